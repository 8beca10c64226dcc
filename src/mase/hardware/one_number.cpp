// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/one_number.h"

#include <algorithm>

namespace mase::one_number {
namespace {

constexpr Slot operand = 0, nothing = -1;

// Knows maps of the operand and of their results, and nothing else.
class MapsOnly final : public Lowering {
 public:
  Shape shape(Slot slot) const override { return slot < 0 ? Shape{} : Shape{1, 1}; }
  bool training() const override { return false; }
  std::optional<Slot> parameter(const std::string&) override { return nothing; }
  Slot rounded(Slot, const std::string&) override { return nothing; }
  Slot map(const Expr&, const std::vector<Slot>& operands) override {
    return std::all_of(operands.begin(), operands.end(), [](Slot slot) { return slot >= 0; })
               ? ++last_
               : nothing;
  }
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

 private:
  Slot last_ = operand;
};

}  // namespace
}  // namespace mase::one_number

namespace mase {

bool is_function_of_one_number(const OpRecord& op, const Value& attributes) {
  if (!op.lower || op.min_inputs > 1) return false;
  one_number::MapsOnly maps;
  return op.lower(maps, attributes, {one_number::operand}) > one_number::operand;
}

}  // namespace mase
