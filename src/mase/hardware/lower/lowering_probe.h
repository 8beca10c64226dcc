// SPDX-License-Identifier: Apache-2.0
// Asks an op what it is made of: its own lowering is run on an engine that knows nothing, and
// whoever asks overrides the few primitives that it wants to see. So hardware reads attributes
// (windows, paddings, dimensions) as the engine does, from one place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/ir/op.h"

namespace mase {

class LoweringProbe : public Lowering {
 public:
  static constexpr Slot nothing = -1;

  // Of what is not known: ops look at single dimensions of it.
  static Shape unknown() { return Shape(8, 1); }

  Shape shape(Slot) const override { return unknown(); }
  bool training() const override { return false; }
  std::optional<Slot> parameter(const std::string&) override { return nothing; }
  Slot rounded(Slot, const std::string&) override { return nothing; }
  Slot map(const Expr&, const std::vector<Slot>&) override { return nothing; }
  Slot linear(Slot, Slot, std::optional<Slot>) override { return nothing; }
  Slot matmul(Slot, Slot) override { return nothing; }
  Slot reduce(ReduceKind, Slot, const std::vector<int64_t>&, bool) override { return nothing; }
  Slot reshape(Slot, const Shape&) override { return nothing; }
  Slot permute(Slot, const std::vector<int64_t>&) override { return nothing; }
  Slot concat(const std::vector<Slot>&, int64_t) override { return nothing; }
  Slot slice(Slot, int64_t, int64_t, int64_t, int64_t) override { return nothing; }
  Slot take(Slot, Slot) override { return nothing; }
  Slot convolution(Slot, Slot, std::optional<Slot>, const Convolution&) override { return nothing; }
  Slot transposed_convolution(Slot, Slot, std::optional<Slot>, const Convolution&,
                              const Shape&) override {
    return nothing;
  }
  Slot pool(PoolKind, Slot, const Windows&, bool, const Shape&) override { return nothing; }
  Slot batch_norm(Slot, const BatchNorm&) override { return nothing; }
  Slot layer_norm(Slot, int64_t, std::optional<Slot>, std::optional<Slot>, double) override {
    return nothing;
  }
  Slot softmax(Slot, int64_t, bool) override { return nothing; }
  Slot dropout(Slot, double) override { return nothing; }
  Slot constant(const Shape&, const std::vector<float>&) override { return nothing; }
  Slot one_hot(Slot, int64_t) override { return nothing; }
  Slot batch_mean(Slot, std::optional<Slot>) override { return nothing; }
  Slot cross_entropy(Slot, Slot, std::optional<Slot>) override { return nothing; }
  Slot primitive(const std::string&, const Value&, const std::vector<Slot>&) override {
    return nothing;
  }
};

}  // namespace mase
