// SPDX-License-Identifier: Apache-2.0
// join: the bits of all operands side by side, the first one lowest, as a plain number: what a
// table of several values is looked up with.
#include <algorithm>

#include "mase/hardware/cost/bit_times.h"
#include "mase/hardware/emit/verilog_text.h"

namespace mase::join_integer_op {
namespace {

constexpr int64_t most_bits = 30;

int64_t mask(int64_t width) { return (int64_t{1} << width) - 1; }

std::string check(const IntegerContext& c) {
  if (c.ranges.empty() || c.node.numbers.size() != c.ranges.size())
    return "it has one width for each operand";
  int64_t bits = 0;
  for (size_t k = 0; k < c.ranges.size(); ++k) {
    if (c.number(k) < std::max(1, c.ranges[k].width()) || c.number(k) > most_bits)
      return fmt::format("operand {} of {} bits does not fit {}", k, c.ranges[k].width(),
                         c.number(k));
    bits += c.number(k);
  }
  return bits > most_bits ? fmt::format("{} bits are more than {}", bits, most_bits) : "";
}

int64_t all_bits(const IntegerNode& node) {
  int64_t bits = 0;
  for (const int64_t width : node.numbers) bits += width;
  return bits;
}

const Register<IntegerOpRecord> registered{{
    .name = "join",
    .summary = "the operands' bits side by side",
    .arity = -1,
    .more_numbers = true,
    .check = check,
    .evaluate =
        [](const int64_t* in, const IntegerNode& node) {
          int64_t result = 0, at = 0;
          for (size_t k = 0; k < node.numbers.size(); ++k) {
            result |= (in[k] & mask(node.numbers[k])) << at;
            at += node.numbers[k];
          }
          return result;
        },
    .range =
        [](const IntegerContext& c) {
          return IntegerRange{0, mask(all_bits(c.node))};
        },
    .frac = [](const IntegerContext&) { return 0; },
    .times =
        [](const IntegerContext& c, const auto& operands) {
          BitTimes result;
          for (size_t k = 0; k < operands.size(); ++k) {
            const BitTimes bits = moved_bits(operands[k], c.ranges[k].is_signed(), 0, 0,
                                             static_cast<int>(c.number(k)));
            result.insert(result.end(), bits.begin(), bits.end());
          }
          return result;
        },
    .verilog =
        [](const IntegerContext& c, const auto& operands) {
          std::vector<std::string> parts;
          for (size_t k = operands.size(); k-- > 0;)
            parts.push_back(extended(operands[k], 0, 0, static_cast<int>(c.number(k))));
          return fmt::format("{{{}}}", join(parts, ", "));
        },
    .cpp =
        [](const IntegerContext& c, const auto& v) {
          std::vector<std::string> parts;
          int64_t at = 0;
          for (size_t k = 0; k < v.size(); ++k) {
            parts.push_back(
                fmt::format("({} & {}LL) * {}LL", v[k], mask(c.number(k)), int64_t{1} << at));
            at += c.number(k);
          }
          return join(parts, " + ");
        },
}};

}  // namespace
}  // namespace mase::join_integer_op
