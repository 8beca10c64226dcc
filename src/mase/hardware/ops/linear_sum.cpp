// SPDX-License-Identifier: Apache-2.0
// linear_sum: constant + factor[0] a[0] + factor[1] a[1] + ..., with the binary point said. It is
// what lowering writes for a neuron, a term for each weight; the optimiser makes additions of it,
// and folded layers take its factors as their weights, so no emitter sees it.
#include <algorithm>
#include <cmath>

#include "mase/formats/few_digits.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase::linear_sum_integer_op {
namespace {

constexpr size_t first_factor = 2;  // behind the binary point and the constant

std::string check(const IntegerContext& c) {
  if (c.ranges.empty() || c.node.numbers.size() != c.ranges.size() + first_factor)
    return "it has one factor for each operand";
  return c.number(0) < -1000 || c.number(0) > 1000 ? "its binary point is out of range" : "";
}

// Term by term: a sum of the first few lies between what stands here then, so that no order of
// evaluation that is this one overflows.
IntegerRange range(const IntegerContext& c) {
  IntegerRange result{c.number(1), c.number(1)};
  for (size_t k = 0; k < c.ranges.size(); ++k) {
    const int64_t first = checked_multiply(c.number(k + first_factor), c.ranges[k].low),
                  second = checked_multiply(c.number(k + first_factor), c.ranges[k].high);
    result.low = checked_add(result.low, std::min(first, second));
    result.high = checked_add(result.high, std::max(first, second));
  }
  return result;
}

const Register<IntegerOpRecord> registered{{
    .name = "linear_sum",
    .summary = "a constant and a sum of multiples",
    .arity = -1,
    .numbers = {"frac", "constant"},
    .more_numbers = true,
    .affine = true,
    .check = check,
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
    // As additions of the factors' digits, before anything is shared.
    .luts =
        [](const IntegerContext& c) {
          return static_cast<double>(adder_count(c.node)) * c.node.range.width();
        },
    .delay =
        [](const IntegerContext& c) {
          return std::ceil(std::log2(1 + static_cast<double>(adder_count(c.node)))) *
                 chain_delay(c.node.range.width());
        },
    .cpp =
        [](const IntegerContext& c, const auto& v) {
          std::string text = fmt::format("{}LL", c.number(1));
          for (size_t k = 0; k < v.size(); ++k)
            text += fmt::format(" + {}LL * {}", c.number(k + first_factor), v[k]);
          return text;
        },
}};

}  // namespace
}  // namespace mase::linear_sum_integer_op
