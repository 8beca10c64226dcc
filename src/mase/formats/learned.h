// SPDX-License-Identifier: Apache-2.0
// Ranges of scaled integers that training finds: the step (LSQ) or the end of the range (PACT).
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "mase/formats/format.h"
#include "mase/formats/kernels/scaled.h"

namespace mase {

// What the data say before training: one per group.
using StartingSpecs = std::function<std::vector<ScaledSpec>(const float* in, const Shape& shape)>;

// Of a type whose source is learned.
std::shared_ptr<const LearnedNumber> learned_range(const Scaled& type,
                                                   const Granularity& granularity,
                                                   StartingSpecs starting_specs);

// Codes are exact in single precision, with bits to spare for v = x / step.
inline constexpr int learned_width_limit = 16;

// LSQ starts at 2 mean|x| / sqrt(largest code), over the finite values of a group. A group without
// any keeps the step it has.
template <class ForEach>
void set_starting_step(ScaledSpec& spec, bool is_signed, const ForEach& for_each, const float* in) {
  double total = 0;
  int64_t count = 0;
  for_each([&](int64_t i) {
    if (!std::isfinite(in[i])) return;
    total += std::fabs(static_cast<double>(in[i]));
    ++count;
  });
  spec.low = is_signed ? -spec.high - 1 : 0;
  if (total > 0) spec.step = 2 * total / static_cast<double>(count) / std::sqrt(spec.high);
}

}  // namespace mase
