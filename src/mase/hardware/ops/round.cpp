// SPDX-License-Identifier: Apache-2.0
// Dropping fraction bits. floor: a 2^-drop rounded down, a slice. round_even, round_away,
// round_zero: to nearest with ties to even, to nearest with ties away from zero, toward zero.
// Half-up is floor(a + half), whose constant merges into a layer's own.
#include <algorithm>

#include "mase/hardware/cost/bit_times.h"
#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/optimize/cmvm.h"

namespace mase::round_integer_op {
namespace {

int64_t floor_shift(int64_t value, int64_t drop) { return value >> drop; }

int64_t round_even(int64_t value, int64_t drop) {
  const int64_t below = value >> drop, rest = value - (below << drop),
                half = int64_t{1} << (drop - 1);
  return below + (rest > half || (rest == half && (below & 1)));
}

int64_t round_away(int64_t value, int64_t drop) {
  const int64_t half = int64_t{1} << (drop - 1);
  return value < 0 ? -((-value + half) >> drop) : (value + half) >> drop;
}

int64_t round_zero(int64_t value, int64_t drop) {
  return value < 0 ? -((-value) >> drop) : value >> drop;
}

std::string bit(const VerilogOperand& operand, int index) {
  return extended(operand, 0, index, index + 1);
}

// The sliced value plus one bit: an incrementer.
std::string incremented(const IntegerContext& c, const VerilogOperand& operand,
                        const std::string& when) {
  const int width = std::max(1, c.node.range.width()), drop = static_cast<int>(c.number(0));
  const std::string sliced = extended(operand, 0, drop, drop + width);
  return width == 1 ? fmt::format("{} ^ ({})", sliced, when)
                    : fmt::format("{} + {{{}, {}}}", sliced, literal_bits(0, width - 1), when);
}

std::string any_below(const VerilogOperand& operand, int count) {
  return count == 0 ? "1'b0" : fmt::format("(|{})", extended(operand, 0, 0, count));
}

std::string even_text(const IntegerContext& c, const std::vector<VerilogOperand>& operands) {
  const int drop = static_cast<int>(c.number(0));
  return incremented(c, operands[0],
                     fmt::format("{} & ({} | {})", bit(operands[0], drop - 1),
                                 any_below(operands[0], drop - 1), bit(operands[0], drop)));
}

std::string away_text(const IntegerContext& c, const std::vector<VerilogOperand>& operands) {
  const int drop = static_cast<int>(c.number(0));
  return incremented(c, operands[0],
                     fmt::format("{} & ({} | ~{})", bit(operands[0], drop - 1),
                                 any_below(operands[0], drop - 1), sign_bit(operands[0])));
}

std::string zero_text(const IntegerContext& c, const std::vector<VerilogOperand>& operands) {
  const int drop = static_cast<int>(c.number(0));
  return incremented(c, operands[0],
                     fmt::format("{} & {}", sign_bit(operands[0]), any_below(operands[0], drop)));
}

using Function = int64_t (*)(int64_t, int64_t);

IntegerOpRecord record(const std::string& name, const std::string& summary, Function function,
                       decltype(IntegerOpRecord::verilog) verilog) {
  IntegerOpRecord result{
      .name = name,
      .summary = summary,
      .numbers = {"drop"},
      .check = [name](const IntegerContext& c) -> std::string {
        return c.number(0) < 1 || c.number(0) > 61 ? "drops 1 to 61 bits" : "";
      },
      .evaluate = [function](const int64_t* in,
                             const IntegerNode& node) { return function(in[0], node.numbers[0]); },
      .range =
          [function](const IntegerContext& c) {
            return IntegerRange{function(c.ranges[0].low, c.number(0)),
                                function(c.ranges[0].high, c.number(0))};
          },
      .frac = [](const IntegerContext& c) { return c.fracs[0] - static_cast<int>(c.number(0)); },
      .verilog = std::move(verilog),
  };
  result.cpp = [name](const IntegerContext& c, const std::vector<std::string>& v) {
    const int64_t drop = c.number(0), half = int64_t{1} << (drop - 1);
    if (name == "floor") return fmt::format("down({}, {})", v[0], drop);
    if (name == "round_zero")
      return fmt::format("{0} < 0 ? -down(-{0}, {1}) : down({0}, {1})", v[0], drop);
    if (name == "round_away")
      return fmt::format("{0} < 0 ? -down(-{0} + {2}LL, {1}) : down({0} + {2}LL, {1})", v[0], drop,
                         half);
    // One less than half for even results: a tie goes down to them.
    return fmt::format("down({0} + {2}LL + (down({0}, {1}) & 1), {1})", v[0], drop, half - 1);
  };
  if (name == "floor") {
    result.lanes = [](const IntegerNode& node) {
      return LaneStep{LaneOp::shift_right, node.numbers[0]};
    };
    result.times = [](const IntegerContext& c, const std::vector<BitTimes>& operands) {
      return sliced_bits(c, operands[0], static_cast<int>(c.number(0)));
    };
  } else {
    if (name == "round_even")
      result.lanes = [](const IntegerNode& node) {
        // In 32 bits nothing is left of numbers that lose more than 31: the interval says so.
        const auto [low, high] = node.range;
        return low == high ? LaneStep{LaneOp::clamp, low, high}
                           : LaneStep{LaneOp::round_even, node.numbers[0]};
      };
    // Whether to round up is a table or two of its own, unless the result's bits have room for it.
    result.luts = [](const IntegerContext& c) {
      const int width = c.node.range.width();
      return width > 2 ? width + 2 : width;
    };
    result.delay = [](const IntegerContext& c) { return 1 + chain_delay(c.node.range.width()); };
  }
  return result;
}

const Register<IntegerOpRecord> registered{
    record("floor", "a 2^-drop rounded down: a slice", floor_shift,
           [](const IntegerContext& c, const auto& operands) {
             const int drop = static_cast<int>(c.number(0));
             return extended(operands[0], 0, drop, drop + std::max(1, c.node.range.width()));
           })};
const Register<IntegerOpRecord> even{
    record("round_even", "a 2^-drop to nearest, ties to even", round_even, even_text)};
const Register<IntegerOpRecord> away{
    record("round_away", "a 2^-drop to nearest, ties away from zero", round_away, away_text)};
const Register<IntegerOpRecord> zero{
    record("round_zero", "a 2^-drop toward zero", round_zero, zero_text)};

}  // namespace
}  // namespace mase::round_integer_op
