// SPDX-License-Identifier: Apache-2.0
// compare: 1 where a is less than b. select: b where a is not zero, else c. multiply: a b.
// table: the number at a - first. popcount: how many operands are not zero. register: a of the
// cycle before, which is a itself once the pipeline is full.
#include <algorithm>
#include <bit>

#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/neuron_tables.h"

namespace mase::select_integer_op {
namespace {

// Plain vectors compare as unsigned numbers: the sign bit turned over puts them in order.
std::string ordered(const VerilogOperand& operand, int width) {
  if (width == 1) return fmt::format("~{}", extended(operand, 0, 0, 1));
  return fmt::format("{{~{}, {}}}", extended(operand, 0, width - 1, width),
                     extended(operand, 0, 0, width - 1));
}

std::string compare_text(const IntegerContext& c, const std::vector<VerilogOperand>& operands) {
  const bool sign = c.ranges[0].is_signed() || c.ranges[1].is_signed();
  int width = 1;
  for (const IntegerRange& range : c.ranges)
    width = std::max(width, range.width() + (sign && !range.is_signed() ? 1 : 0));
  if (!sign)
    return fmt::format("{} < {}", extended(operands[0], 0, 0, width),
                       extended(operands[1], 0, 0, width));
  return fmt::format("{} < {}", ordered(operands[0], width), ordered(operands[1], width));
}

// A number that is not negative reaches a power of two where one of its higher bits is set.
double compare_luts(const IntegerContext& c) {
  const IntegerRange &a = c.ranges[0], &b = c.ranges[1];
  const auto bound = static_cast<uint64_t>(a.low) + 1;
  if (a.low == a.high && a.low >= 0 && b.low >= 0 && std::has_single_bit(bound)) {
    constexpr double further_bits = 5;  // of a table, beside one that others have ORed already
    return std::max(0, b.width() - static_cast<int>(std::bit_width(bound))) / further_bits;
  }
  const int luts = (std::max(a.width(), b.width()) + 1) / 2;
  // Thresholds of one number share nearly all of it. Fitted, like the numbers below.
  constexpr double share_of_threshold = 0.108;
  return a.low == a.high || b.low == b.high ? share_of_threshold * luts : luts;
}

// A bit that only one of the two can have is an AND, and several of them share a table. Both
// numbers are fitted, like the factors of estimate.cpp: choices come in chains, with conditions of
// their own.
double select_luts(const IntegerContext& c) {
  const IntegerRange &b = c.ranges[1], &other = c.ranges[2];
  if (b.is_signed() || other.is_signed()) return c.node.range.width();
  constexpr double luts_of_choice = 2.7, luts_of_and = 0.4;
  const int lowest = std::max(c.low_zeros[1], c.low_zeros[2]);
  const int both = std::max(0, std::min(b.width(), other.width()) - lowest);
  const int any = std::max(0, c.node.range.width() - std::min(c.low_zeros[1], c.low_zeros[2]));
  return luts_of_choice * both + luts_of_and * std::max(0, any - both);
}

// Codes that never come are as good as the nearest that does.
std::vector<int64_t> table_entries(const IntegerContext& c) {
  const IntegerRange& in = c.ranges[0];
  const int bits = std::max(1, in.width());
  std::vector<int64_t> entries(size_t{1} << bits);
  for (size_t k = 0; k < entries.size(); ++k) {
    int64_t code = static_cast<int64_t>(k);
    if (in.is_signed() && code >= int64_t{1} << (bits - 1)) code -= int64_t{1} << bits;
    code = std::clamp(code, in.low, in.high);
    entries[k] = c.node.numbers[static_cast<size_t>(code - c.number(0) + 2)];
  }
  return entries;
}

const Register<IntegerOpRecord> registered{{
    .name = "compare",
    .summary = "1 where a < b, else 0",
    .arity = 2,
    .check = [](const IntegerContext& c) -> std::string {
      return c.fracs[0] != c.fracs[1] ? "its operands' binary points differ" : "";
    },
    .evaluate = [](const int64_t* in, const IntegerNode&) -> int64_t { return in[0] < in[1]; },
    .range =
        [](const IntegerContext& c) {
          return IntegerRange{c.ranges[0].high < c.ranges[1].low,
                              c.ranges[0].low < c.ranges[1].high};
        },
    .frac = [](const IntegerContext&) { return 0; },
    .luts = compare_luts,
    .delay = [](const IntegerContext& c) { return 1 + (c.ranges[0].width() + 7) / 8; },
    .verilog = compare_text,
    .cpp =
        []([[maybe_unused]] const IntegerContext& c, [[maybe_unused]] const auto& v) {
          return fmt::format("{} < {} ? 1 : 0", v[0], v[1]);
        },
}};

const Register<IntegerOpRecord> select{{
    .name = "select",
    .summary = "b where a is not zero, else c",
    .arity = 3,
    .check = [](const IntegerContext& c) -> std::string {
      if (c.fracs[1] != c.fracs[2]) return "its operands' binary points differ";
      return c.ranges[0].low < 0 || c.ranges[0].high > 1 ? "its condition is not one bit" : "";
    },
    .evaluate = [](const int64_t* in, const IntegerNode&) { return in[0] != 0 ? in[1] : in[2]; },
    .range =
        [](const IntegerContext& c) {
          return IntegerRange{std::min(c.ranges[1].low, c.ranges[2].low),
                              std::max(c.ranges[1].high, c.ranges[2].high)};
        },
    .frac = [](const IntegerContext& c) { return c.fracs[1]; },
    .luts = select_luts,
    .delay = [](const IntegerContext&) { return 1; },
    .verilog =
        [](const IntegerContext& c, const auto& operands) {
          const int width = std::max(1, c.node.range.width());
          return fmt::format("{} ? {} : {}", operands[0].signal, extended(operands[1], 0, 0, width),
                             extended(operands[2], 0, 0, width));
        },
    .cpp =
        []([[maybe_unused]] const IntegerContext& c, [[maybe_unused]] const auto& v) {
          return fmt::format("{} != 0 ? {} : {}", v[0], v[1], v[2]);
        },
}};

const Register<IntegerOpRecord> multiply{{
    .name = "multiply",
    .summary = "a b",
    .arity = 2,
    .evaluate = [](const int64_t* in, const IntegerNode&) { return in[0] * in[1]; },
    .range =
        [](const IntegerContext& c) {
          IntegerRange range{INT64_MAX, INT64_MIN};
          for (const int64_t a : {c.ranges[0].low, c.ranges[0].high})
            for (const int64_t b : {c.ranges[1].low, c.ranges[1].high}) {
              const int64_t product = checked_multiply(a, b);
              range.low = std::min(range.low, product);
              range.high = std::max(range.high, product);
            }
          return range;
        },
    .frac = [](const IntegerContext& c) { return c.fracs[0] + c.fracs[1]; },
    .luts = [](const IntegerContext& c) { return c.ranges[0].width() * c.ranges[1].width(); },
    .delay = [](const IntegerContext& c) { return 2 * c.ranges[1].width(); },
    .verilog =
        [](const IntegerContext& c, const auto& operands) {
          const int width = std::max(1, c.node.range.width());
          return fmt::format("{} * {}", extended(operands[0], 0, 0, width),
                             extended(operands[1], 0, 0, width));
        },
    .cpp = []([[maybe_unused]] const IntegerContext& c,
              [[maybe_unused]] const auto& v) { return fmt::format("{} * {}", v[0], v[1]); },
}};

const Register<IntegerOpRecord> table{{
    .name = "table",
    .summary = "the number at a - first",
    .numbers = {"first", "frac"},
    .more_numbers = true,
    .check = [](const IntegerContext& c) -> std::string {
      const int64_t entries = static_cast<int64_t>(c.node.numbers.size()) - 2;
      if (c.number(1) < -1000 || c.number(1) > 1000) return "its binary point is out of range";
      if (c.ranges[0].low < c.number(0) || c.ranges[0].high - c.number(0) >= entries)
        return fmt::format("its {} entries from {} do not cover [{}, {}]", entries, c.number(0),
                           c.ranges[0].low, c.ranges[0].high);
      return "";
    },
    .evaluate =
        [](const int64_t* in, const IntegerNode& node) {
          return node.numbers[static_cast<size_t>(in[0] - node.numbers[0] + 2)];
        },
    .range =
        [](const IntegerContext& c) {
          const auto first = c.node.numbers.begin() + 2 + (c.ranges[0].low - c.number(0));
          const auto last = c.node.numbers.begin() + 3 + (c.ranges[0].high - c.number(0));
          const auto [low, high] = std::minmax_element(first, last);
          return IntegerRange{*low, *high};
        },
    .frac = [](const IntegerContext& c) { return static_cast<int>(c.number(1)); },
    .luts =
        [](const IntegerContext& c) {
          const int bits = c.ranges[0].width();
          if (bits > 12)
            return static_cast<double>(int64_t{1} << std::min(bits - 6, 30)) * c.node.range.width();
          return table_luts(table_entries(c), c.node.range.width());
        },
    .delay =
        [](const IntegerContext& c) {
          const int bits = c.ranges[0].width();
          return bits <= 6 ? 1 : 1 + (bits - 5) / 2;
        },
    .entries = table_entries,
    .cpp =
        []([[maybe_unused]] const IntegerContext& c, [[maybe_unused]] const auto& v) {
          return fmt::format("{}[{} - ({}LL)]", v[1], v[0], c.number(0));
        },
}};

const Register<IntegerOpRecord> popcount{{
    .name = "popcount",
    .summary = "how many operands are one",
    .arity = -1,
    .check = [](const IntegerContext& c) -> std::string {
      for (const IntegerRange& range : c.ranges)
        if (range.low < 0 || range.high > 1) return "its operands are not single bits";
      return c.ranges.empty() ? "it has no operands" : "";
    },
    .evaluate =
        [](const int64_t* in, const IntegerNode& node) {
          int64_t sum = 0;
          for (size_t k = 0; k < node.inputs.size(); ++k) sum += in[k];
          return sum;
        },
    .range =
        [](const IntegerContext& c) {
          IntegerRange range;
          for (const IntegerRange& r : c.ranges) {
            range.low += r.low;
            range.high += r.high;
          }
          return range;
        },
    .frac = [](const IntegerContext&) { return 0; },
    .luts = [](const IntegerContext& c) { return static_cast<double>(c.ranges.size()); },
    .delay = [](const IntegerContext& c) { return 2 * c.node.range.width(); },
    .verilog =
        [](const IntegerContext& c, const auto& operands) {
          const int width = std::max(1, c.node.range.width());
          std::vector<std::string> terms;
          for (const VerilogOperand& operand : operands)
            terms.push_back(extended(operand, 0, 0, width));
          return join(terms, " + ");
        },
    .cpp = []([[maybe_unused]] const IntegerContext& c,
              [[maybe_unused]] const auto& v) { return join(v, " + "); },
}};

const Register<IntegerOpRecord> pipeline{{
    .name = "register",
    .summary = "a, one clock later",
    .affine = true,
    .evaluate = [](const int64_t* in, const IntegerNode&) { return in[0]; },
    .lanes =
        [](const IntegerNode&) {
          return LaneStep{LaneOp::shift_left, 0};
        },
    .range = [](const IntegerContext& c) { return c.ranges[0]; },
    .frac = [](const IntegerContext& c) { return c.fracs[0]; },
    .rule =
        [](const IntegerContext&) {
          return AffineRule{{1}, 0};
        },
    .cpp = []([[maybe_unused]] const IntegerContext& c,
              [[maybe_unused]] const auto& v) { return std::string(v[0]); },
}};

}  // namespace
}  // namespace mase::select_integer_op
