// SPDX-License-Identifier: Apache-2.0
// What operations that are a constant and a sum of multiples of their operands have in common:
// numbers are the binary point, the constant, and a factor for each operand.
#pragma once

#include <algorithm>
#include <span>

#include "mase/hardware/graph/linear_form.h"

namespace mase::sum_of_multiples {

constexpr size_t first_factor = 2;  // behind the binary point and the constant

// Term by term: a sum of the first few lies between what stands here then, so that no order of
// evaluation that is this one overflows.
inline IntegerRange range(const IntegerContext& c) {
  IntegerRange result{c.number(1), c.number(1)};
  for (size_t k = 0; k < c.ranges.size(); ++k) {
    const int64_t first = checked_multiply(c.number(k + first_factor), c.ranges[k].low),
                  second = checked_multiply(c.number(k + first_factor), c.ranges[k].high);
    result.low = checked_add(result.low, std::min(first, second));
    result.high = checked_add(result.high, std::max(first, second));
  }
  return result;
}

// A record without name, check and price.
inline IntegerOpRecord record() {
  return {
      .arity = -1,
      .numbers = {"frac", "constant"},
      .more_numbers = true,
      .affine = true,
      .evaluate =
          [](const int64_t* in, const IntegerNode& node) {
            int64_t sum = node.numbers[1];
            for (size_t k = 0; k < node.inputs.size(); ++k)
              sum += node.numbers[k + first_factor] * in[k];
            return sum;
          },
      .lanes =
          [](const IntegerNode& node) {
            return LaneStep{.op = LaneOp::linear_sum,
                            .k0 = node.numbers[1],
                            .factors = std::span(node.numbers).subspan(first_factor)};
          },
      .range = range,
      .frac = [](const IntegerContext& c) { return static_cast<int>(c.number(0)); },
      .rule =
          [](const IntegerContext& c) {
            return AffineRule{{c.node.numbers.begin() + static_cast<std::ptrdiff_t>(first_factor),
                               c.node.numbers.end()},
                              c.number(1)};
          },
      .cpp =
          [](const IntegerContext& c, const auto& v) {
            std::string text = fmt::format("{}LL", c.number(1));
            for (size_t k = 0; k < v.size(); ++k)
              text += fmt::format(" + {}LL * {}", c.number(k + first_factor), v[k]);
            return text;
          },
  };
}

}  // namespace mase::sum_of_multiples
