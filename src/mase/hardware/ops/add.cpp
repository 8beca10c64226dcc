// SPDX-License-Identifier: Apache-2.0
// add:       a 2^shift_a + b 2^shift_b + carry 2^p       carry 0 or  1
// subtract:  a 2^shift_a - b 2^shift_b - borrow 2^p      borrow 0 or 1
// p is where the carry chain begins: below it one operand has no bits and the other's pass through
// (a subtracted operand begins the chain itself). The carry into a chain is free, so that constants
// of a layer can hide in it.
#include <algorithm>

#include "mase/hardware/cost/bit_times.h"
#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/cmvm.h"

namespace mase::add_integer_op {
namespace {

int64_t power(int64_t shift) { return int64_t{1} << shift; }

int64_t chain_start(const IntegerNode& node, bool subtract) {
  return subtract ? node.numbers[1] : std::max(node.numbers[0], node.numbers[1]);
}

std::string check(const IntegerContext& c) {
  for (const size_t k : {0u, 1u})
    if (c.number(k) < 0 || c.number(k) > 60)
      return fmt::format("a shift of {} is not within 0 to 60", c.number(k));
  if (c.number(2) != 0 && c.number(2) != 1) return "a carry is 0 or 1";
  if (c.fracs[0] + c.number(0) != c.fracs[1] + c.number(1))
    return fmt::format("its operands' binary points {} and {} do not meet", c.fracs[0], c.fracs[1]);
  return "";
}

AffineRule rule(const IntegerContext& c, bool subtract) {
  const int64_t sign = subtract ? -1 : 1;
  return {{power(c.number(0)), sign * power(c.number(1))},
          sign * c.number(2) * power(chain_start(c.node, subtract))};
}

IntegerRange range(const IntegerContext& c, bool subtract) {
  const AffineRule affine = rule(c, subtract);
  IntegerRange result{affine.constant, affine.constant};
  for (size_t k = 0; k < 2; ++k) {
    const IntegerRange& r = c.ranges[k];
    const int64_t first = checked_multiply(affine.factors[k], r.low),
                  second = checked_multiply(affine.factors[k], r.high);
    result.low = checked_add(result.low, std::min(first, second));
    result.high = checked_add(result.high, std::max(first, second));
  }
  return result;
}

int64_t evaluate(const int64_t* in, const IntegerNode& node, bool subtract) {
  const int64_t a = in[0] * power(node.numbers[0]), b = in[1] * power(node.numbers[1]);
  const int64_t carry = node.numbers[2] * power(chain_start(node, subtract));
  return subtract ? a - b - carry : a + b + carry;
}

// Whether one operand ends below where the other begins: then nothing is added at all.
bool disjoint(const IntegerContext& c) {
  const auto ends_below = [&](size_t low, size_t high) {
    return !c.ranges[low].is_signed() && c.ranges[low].width() + c.number(low) <= c.number(high);
  };
  return c.number(2) == 0 && (ends_below(0, 1) || ends_below(1, 0));
}

// Where both operands are extended all bits of the chain have the same table, or none.
double chain_bits(const IntegerContext& c, bool subtract) {
  if (!subtract && disjoint(c)) return 0;
  const int64_t top = std::min<int64_t>(
      c.node.range.width(),
      std::max(c.ranges[0].width() + c.number(0), c.ranges[1].width() + c.number(1)));
  return static_cast<double>(std::max<int64_t>(0, top - chain_start(c.node, subtract)));
}

double delay(const IntegerContext& c, bool subtract) {
  return chain_delay(static_cast<int>(chain_bits(c, subtract)));
}

BitTimes times(const IntegerContext& c, const std::vector<BitTimes>& operands, bool subtract) {
  const int width = c.node.range.width();
  const auto bits = [&](size_t k, int from, int to) {
    return moved_bits(operands[k], c.ranges[k].is_signed(), static_cast<int>(c.number(k)), from,
                      to);
  };
  const size_t lower = subtract || c.number(0) < c.number(1) ? 0 : 1;
  const int start = std::min(width, static_cast<int>(chain_start(c.node, subtract)));
  BitTimes result = bits(lower, 0, start);
  const BitTimes sum = !subtract && disjoint(c)
                           ? bits(1 - lower, start, width)
                           : chain_times(bits(0, start, width), bits(1, start, width));
  result.insert(result.end(), sum.begin(), sum.end());
  return result;
}

std::string verilog(const IntegerContext& c, const std::vector<VerilogOperand>& operands,
                    bool subtract) {
  const int width = c.node.range.width();
  const int lows[] = {static_cast<int>(c.number(0)), static_cast<int>(c.number(1))};
  const auto bits = [&](size_t k, int from, int to) {
    return extended(operands[k], lows[k], from, to);
  };
  // Below the chain only one operand has bits.
  const size_t lower = subtract || lows[0] < lows[1] ? 0 : 1;
  const int start = std::min(width, static_cast<int>(chain_start(c.node, subtract)));
  std::string sum;
  if (!subtract && disjoint(c))
    sum = bits(1 - lower, start, width);
  else if (start < width) {
    const bool carry = c.number(2) == 1;
    // x - ~y is x + y + 1 and x + ~y is x - y - 1: one carry chain either way.
    sum = fmt::format("{} {} {}{}", bits(0, start, width), subtract != carry ? "-" : "+",
                      carry ? "~" : "", bits(1, start, width));
  }
  if (start == 0) return sum;
  const std::string rest = bits(lower, 0, start);
  return start == width ? rest : fmt::format("{{{}, {}}}", sum, rest);
}

IntegerOpRecord record(bool subtract) {
  return {
      .name = subtract ? "subtract" : "add",
      .summary = subtract ? "a 2^shift_a - b 2^shift_b - carry 2^p"
                          : "a 2^shift_a + b 2^shift_b + carry 2^p",
      .arity = 2,
      .numbers = {"shift_a", "shift_b", "carry"},
      .affine = true,
      .check = check,
      .evaluate = [subtract](const int64_t* in,
                             const IntegerNode& node) { return evaluate(in, node, subtract); },
      .lanes =
          [subtract](const IntegerNode& node) {
            return LaneStep{subtract ? LaneOp::subtract : LaneOp::add, node.numbers[0],
                            node.numbers[1], node.numbers[2] * power(chain_start(node, subtract))};
          },
      .range = [subtract](const IntegerContext& c) { return range(c, subtract); },
      .frac = [](const IntegerContext& c) { return c.fracs[0] + static_cast<int>(c.number(0)); },
      .rule = [subtract](const IntegerContext& c) { return rule(c, subtract); },
      .luts = [subtract](const IntegerContext& c) { return chain_bits(c, subtract); },
      .delay = [subtract](const IntegerContext& c) { return delay(c, subtract); },
      .times = [subtract](const IntegerContext& c,
                          const auto& operands) { return times(c, operands, subtract); },
      .verilog = [subtract](const IntegerContext& c,
                            const auto& operands) { return verilog(c, operands, subtract); },
      .cpp =
          [subtract](const IntegerContext& c, const auto& v) {
            return fmt::format("up({}, {}) {} up({}, {}) {} {}LL", v[0], c.number(0),
                               subtract ? "-" : "+", v[1], c.number(1), subtract ? "-" : "+",
                               c.number(2) * power(chain_start(c.node, subtract)));
          },
  };
}

const Register<IntegerOpRecord> registered{record(false)};
const Register<IntegerOpRecord> subtract{record(true)};

}  // namespace
}  // namespace mase::add_integer_op
