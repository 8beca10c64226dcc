// SPDX-License-Identifier: Apache-2.0
// Parts of constant matrix-vector products as look-up tables: inputs of few bits are put together
// in groups of six bits at most, and what an output adds up of one group is one table for each bit
// of that sum. Compressors of single bits are the narrowest of these.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mase/hardware/optimize/cmvm.h"

namespace mase {

inline constexpr int small_sum_bits = 6;  // of the operands of one

// The sum for every value of the operands' bits, the first operand's lowest. Values that never come
// count as the nearest that does.
std::vector<int64_t> small_sum_entries(const std::vector<IntegerRange>& operands,
                                       const std::vector<int64_t>& factors);

struct GroupedProduct {
  struct Part {
    std::vector<size_t> inputs;  // of the product that was given
    std::vector<int64_t> factors;
  };
  std::vector<size_t> kept;  // inputs that stay
  std::vector<Part> parts;
  CmvmProblem problem;  // its inputs: those that stay, then the parts
  double luts = 0;      // of the parts
};

// Inputs of at most so many bits in groups, those together that outputs have together. Nothing
// where no output has two of a group.
std::optional<GroupedProduct> group_narrow_inputs(const CmvmProblem& problem, int most_bits);

}  // namespace mase
