// SPDX-License-Identifier: Apache-2.0
// small_sum: factor[0] a[0] + factor[1] a[1] + ... of operands that have six bits together. Every
// bit of the result is one look-up table, where additions would be a chain for each term: six
// single bits, for instance, are counted by three tables (a compressor).
#include <algorithm>

#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/neuron_tables.h"
#include "mase/hardware/optimize/small_sums.h"

namespace mase::small_sum_integer_op {
namespace {

std::string check(const IntegerContext& c) {
  if (c.ranges.empty() || c.node.numbers.size() != c.ranges.size() + 1)
    return "it has one factor for each operand";
  if (c.number(0) < -1000 || c.number(0) > 1000) return "its binary point is out of range";
  int bits = 0;
  for (const IntegerRange& range : c.ranges) bits += std::max(1, range.width());
  return bits > small_sum_bits
             ? fmt::format("its operands have {} bits, more than {}", bits, small_sum_bits)
             : "";
}

IntegerRange range(const IntegerContext& c) {
  IntegerRange result;
  for (size_t k = 0; k < c.ranges.size(); ++k) {
    const int64_t first = checked_multiply(c.number(k + 1), c.ranges[k].low),
                  second = checked_multiply(c.number(k + 1), c.ranges[k].high);
    result.low = checked_add(result.low, std::min(first, second));
    result.high = checked_add(result.high, std::max(first, second));
  }
  return result;
}

std::vector<int64_t> factors(const IntegerNode& node) {
  return {node.numbers.begin() + 1, node.numbers.end()};
}

const Register<IntegerOpRecord> registered{{
    .name = "small_sum",
    .summary = "a sum of multiples of few bits, as look-up tables",
    .arity = -1,
    .numbers = {"frac"},
    .more_numbers = true,
    .affine = true,
    .check = check,
    .evaluate =
        [](const int64_t* in, const IntegerNode& node) {
          int64_t sum = 0;
          for (size_t k = 0; k < node.inputs.size(); ++k) sum += node.numbers[k + 1] * in[k];
          return sum;
        },
    .range = range,
    .frac = [](const IntegerContext& c) { return static_cast<int>(c.number(0)); },
    .rule =
        [](const IntegerContext& c) {
          return AffineRule{factors(c.node), 0};
        },
    .luts =
        [](const IntegerContext& c) {
          return table_luts(small_sum_entries(c.ranges, factors(c.node)),
                            std::max(1, c.node.range.width()));
        },
    .delay = [](const IntegerContext&) { return 1; },
    .entries = [](const IntegerContext& c) { return small_sum_entries(c.ranges, factors(c.node)); },
    .cpp =
        [](const IntegerContext& c, const auto& v) {
          std::vector<std::string> terms;
          for (size_t k = 0; k < v.size(); ++k)
            terms.push_back(fmt::format("({}LL) * {}", c.number(k + 1), v[k]));
          return join(terms, " + ");
        },
}};

}  // namespace
}  // namespace mase::small_sum_integer_op
