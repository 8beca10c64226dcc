// SPDX-License-Identifier: Apache-2.0
// Ranges of scaled integers that training finds: the step (LSQ) or the end of the range (PACT).
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mase/formats/format.h"
#include "mase/formats/kernels/scaled.h"

namespace mase {

struct LearnedRange {
  bool clip = false;  // the number is the end of the range, not the step
  ScaledSpec spec;    // the codes; the step is not used
  std::string granularity;
  int64_t axis = 0;
  // What the data say before training: one per group.
  std::function<std::vector<ScaledSpec>(const float* in, const Shape& shape)> starting_specs;
};

// Codes are exact in single precision, with bits to spare for v = x / step.
inline constexpr int learned_width_limit = 16;

// Codes of a learned range: all of the word's for a step, symmetric ones for a clip.
ScaledSpec learned_range_spec(int width, bool is_signed, bool clip);
std::shared_ptr<const LearnedNumber> learned_range(LearnedRange range);

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
