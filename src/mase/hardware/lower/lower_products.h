// SPDX-License-Identifier: Apache-2.0
// What layers with weights share on their way to integers: parameters rounded as their formats say
// and checked to be exact, sums, windows over planes, and how wide their sums are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/hardware/lower/integer_lowering.h"
#include "mase/hardware/lower/lower_linear.h"
#include "mase/ir/lowering.h"

namespace mase {

// Weight and bias of a layer as they are rounded; refuses what is not rounded, what is a value of
// the network instead of a parameter, and scales that no sum in single precision adds exactly.
struct LayerParameters {
  Shape shape;  // of the weight, its first dimension the outputs
  std::vector<double> weight, bias;
  double bias_of(size_t output) const { return bias.empty() ? 0 : bias[output]; }
};
LayerParameters layer_parameters(const IntegerCall& call);

// Sums, and the most bits that any of them needs in whatever order it is added.
class LayerSums {
 public:
  explicit LayerSums(const IntegerCall& call) : call_(call) {}
  IntegerId sum(const std::vector<SumTerm>& terms, double bias, int least_frac = no_least_frac);
  void note() const;  // whether single precision adds them exactly

 private:
  const IntegerCall& call_;
  double largest_ = 1;
};

// Windows over [1, C, H, W] or [1, C, L] with a result of so many channels.
IntegerGraph::Sliding sliding_windows(const Windows& windows, const Shape& x, const Shape& y);
// Features [C][positions] as [positions][C].
std::vector<IntegerId> by_position(const std::vector<IntegerId>& features, int64_t channels);

}  // namespace mase
