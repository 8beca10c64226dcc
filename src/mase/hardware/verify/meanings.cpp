// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/meanings.h"

#include <algorithm>
#include <cmath>

#include "mase/base/text.h"

namespace mase {
namespace {

using Numbers = std::vector<int64_t>;
using Intervals = std::vector<Interval>;
using Words = std::vector<LogicWord>;

constexpr int64_t most_shift = 60;

bool within(int64_t value, int64_t low, int64_t high) { return low <= value && value <= high; }

Numbers behind(const Numbers& numbers, size_t first) {
  return {numbers.begin() + static_cast<std::ptrdiff_t>(std::min(first, numbers.size())),
          numbers.end()};
}

// Rounded down, whatever the sign.
int64_t divided(int64_t value, int64_t bits) { return value >> bits; }

int64_t nearest_even(int64_t value, int64_t drop) {
  const int64_t unit = int64_t{1} << drop, down = divided(value, drop), rest = value - down * unit;
  if (2 * rest != unit) return down + (2 * rest > unit);
  return down + (down % 2 != 0);
}

int64_t nearest_away(int64_t value, int64_t drop) {
  const int64_t half = int64_t{1} << (drop - 1);
  return value >= 0 ? divided(value + half, drop) : -divided(half - value, drop);
}

int64_t toward_zero(int64_t value, int64_t drop) {
  return value >= 0 ? divided(value, drop) : -divided(-value, drop);
}

int64_t around(int64_t value, int64_t width, bool is_signed) {
  const int64_t rest = value & ((int64_t{1} << width) - 1);
  return is_signed && rest >= int64_t{1} << (width - 1) ? rest - (int64_t{1} << width) : rest;
}

// A rounding is never falling: its ends are those of the operand.
Meaning rounding(const std::string& name, int64_t (*value)(int64_t, int64_t),
                 std::function<LogicWord(BitLogic&, const LogicWord&, size_t)> logic) {
  Meaning meaning{.name = name, .numbers = {"drop"}};
  meaning.wrong = [](const CheckedNode& node, const Intervals&) -> std::string {
    return within(node.numbers[0], 1, 61) ? "" : "it drops 1 to 61 bits";
  };
  meaning.value = [value](const int64_t* in, const CheckedNode& node) {
    return value(in[0], node.numbers[0]);
  };
  meaning.interval = [value](const CheckedNode& node, const Intervals& in) {
    return Interval{value(in[0].low, node.numbers[0]), value(in[0].high, node.numbers[0])};
  };
  meaning.logic = [logic = std::move(logic)](const CheckedNode& node, BitLogic& bits,
                                             const Words& in) {
    return logic(bits, in[0], static_cast<size_t>(node.numbers[0]));
  };
  return meaning;
}

LogicWord floor_logic(BitLogic& logic, const LogicWord& a, size_t drop) {
  return logic.sliced(a, drop);
}

LogicWord even_logic(BitLogic& logic, const LogicWord& a, size_t drop) {
  const LogicWord down = logic.sliced(a, drop), half = logic.constant(int64_t{1} << (drop - 1));
  const LogicWord rest{logic.extended(a, drop).bits, false};
  DecisionDiagram& diagram = logic.diagram();
  const Decision odd = down.bits.empty() ? DecisionDiagram::never : down.bits[0];
  const Decision up = diagram.either(logic.less(half, rest),
                                     diagram.both(diagram.inverse(logic.less(rest, half)), odd));
  return logic.sum(down, {{up}, false});
}

LogicWord away_logic(BitLogic& logic, const LogicWord& a, size_t drop) {
  const LogicWord half = logic.constant(int64_t{1} << (drop - 1));
  return logic.choose(logic.sign(a),
                      logic.negated(logic.sliced(logic.sum(logic.negated(a), half), drop)),
                      logic.sliced(logic.sum(a, half), drop));
}

LogicWord zero_logic(BitLogic& logic, const LogicWord& a, size_t drop) {
  return logic.choose(logic.sign(a), logic.negated(logic.sliced(logic.negated(a), drop)),
                      logic.sliced(a, drop));
}

Meaning sum(const std::string& name, int operands, std::vector<std::string> numbers,
            bool more_numbers, std::function<SumMeaning(const CheckedNode&)> meaning,
            decltype(Meaning::wrong) wrong = {}) {
  Meaning result{.name = name,
                 .operands = operands,
                 .numbers = std::move(numbers),
                 .more_numbers = more_numbers};
  result.wrong = std::move(wrong);
  result.sum = std::move(meaning);
  return result;
}

// add and subtract: shifts of both, and a one where both chains have begun.
Meaning adder(const std::string& name, bool subtract) {
  return sum(
      name, 2, {"shift_a", "shift_b", "carry"}, false,
      [subtract](const CheckedNode& node) {
        const int64_t a = node.numbers[0], b = node.numbers[1], sign = subtract ? -1 : 1;
        const int64_t at = subtract ? b : std::max(a, b);
        return SumMeaning{{int64_t{1} << a, sign * (int64_t{1} << b)},
                          sign * node.numbers[2] * (int64_t{1} << at)};
      },
      [](const CheckedNode& node, const Intervals&) -> std::string {
        if (!within(node.numbers[0], 0, most_shift) || !within(node.numbers[1], 0, most_shift))
          return "a shift is out of range";
        return within(node.numbers[2], 0, 1) ? "" : "a carry is 0 or 1";
      });
}

// Numbers: some, then a factor for each operand.
Meaning multiples(const std::string& name, std::vector<std::string> numbers, bool constant) {
  const size_t first = numbers.size();
  return sum(
      name, -1, std::move(numbers), true,
      [first, constant](const CheckedNode& node) {
        return SumMeaning{behind(node.numbers, first), constant ? node.numbers[1] : 0};
      },
      [first](const CheckedNode& node, const Intervals& in) -> std::string {
        return node.numbers.size() == in.size() + first ? "" : "it has one factor for each operand";
      });
}

int64_t joined(const int64_t* in, const CheckedNode& node) {
  int64_t result = 0, at = 0;
  for (size_t k = 0; k < node.numbers.size(); ++k) {
    result += around(in[k], node.numbers[k], false) << at;
    at += node.numbers[k];
  }
  return result;
}

Meaning join_meaning() {
  constexpr int64_t most_bits = 30;
  Meaning meaning{.name = "join", .operands = -1, .more_numbers = true};
  meaning.wrong = [](const CheckedNode& node, const Intervals& in) -> std::string {
    if (in.empty() || node.numbers.size() != in.size()) return "it has one width for each operand";
    int64_t bits = 0;
    for (size_t k = 0; k < in.size(); ++k) {
      if (!within(node.numbers[k], std::max(1, in[k].width()), most_bits))
        return "an operand does not fit its width";
      bits += node.numbers[k];
    }
    return bits > most_bits ? "it has too many bits" : "";
  };
  meaning.value = joined;
  meaning.interval = [](const CheckedNode& node, const Intervals&) {
    int64_t bits = 0;
    for (const int64_t width : node.numbers) bits += width;
    return Interval{0, (int64_t{1} << bits) - 1};
  };
  meaning.logic = [](const CheckedNode& node, BitLogic& logic, const Words& in) {
    LogicWord result;
    for (size_t k = 0; k < in.size(); ++k) {
      const LogicWord part = logic.extended(in[k], static_cast<size_t>(node.numbers[k]));
      result.bits.insert(result.bits.end(), part.bits.begin(), part.bits.end());
    }
    return result;
  };
  return meaning;
}

Meaning table_meaning() {
  Meaning meaning{.name = "table", .numbers = {"first", "frac"}, .more_numbers = true};
  meaning.wrong = [](const CheckedNode& node, const Intervals& in) -> std::string {
    const auto entries = static_cast<int64_t>(node.numbers.size()) - 2;
    return in[0].low >= node.numbers[0] && in[0].high - node.numbers[0] < entries
               ? ""
               : "its entries do not cover its operand";
  };
  meaning.value = [](const int64_t* in, const CheckedNode& node) {
    return node.numbers[static_cast<size_t>(in[0] - node.numbers[0]) + 2];
  };
  meaning.interval = [](const CheckedNode& node, const Intervals& in) {
    const auto first = node.numbers.begin() + 2 + (in[0].low - node.numbers[0]);
    const auto [low, high] = std::minmax_element(first, first + (in[0].high - in[0].low) + 1);
    return Interval{*low, *high};
  };
  return meaning;
}

Meaning clamp_meaning() {
  Meaning meaning{.name = "clamp", .numbers = {"low", "high"}};
  meaning.wrong = [](const CheckedNode& node, const Intervals&) -> std::string {
    return node.numbers[0] <= node.numbers[1] ? "" : "low is above high";
  };
  meaning.value = [](const int64_t* in, const CheckedNode& node) {
    return std::clamp(in[0], node.numbers[0], node.numbers[1]);
  };
  meaning.interval = [](const CheckedNode& node, const Intervals& in) {
    return Interval{std::clamp(in[0].low, node.numbers[0], node.numbers[1]),
                    std::clamp(in[0].high, node.numbers[0], node.numbers[1])};
  };
  meaning.logic = [](const CheckedNode& node, BitLogic& logic, const Words& in) {
    return logic.limited(in[0], node.numbers[0], node.numbers[1]);
  };
  return meaning;
}

Meaning relu_meaning() {
  Meaning meaning{.name = "relu"};
  meaning.value = [](const int64_t* in, const CheckedNode&) { return std::max<int64_t>(in[0], 0); };
  meaning.interval = [](const CheckedNode&, const Intervals& in) {
    return Interval{std::max<int64_t>(in[0].low, 0), std::max<int64_t>(in[0].high, 0)};
  };
  meaning.logic = [](const CheckedNode&, BitLogic& logic, const Words& in) {
    return logic.choose(logic.sign(in[0]), logic.constant(0), in[0]);
  };
  return meaning;
}

Meaning magnitude_meaning() {
  Meaning meaning{.name = "magnitude"};
  meaning.value = [](const int64_t* in, const CheckedNode&) { return std::abs(in[0]); };
  meaning.interval = [](const CheckedNode&, const Intervals& in) {
    const int64_t a = std::abs(in[0].low), b = std::abs(in[0].high);
    return Interval{in[0].low < 0 && in[0].high > 0 ? 0 : std::min(a, b), std::max(a, b)};
  };
  meaning.logic = [](const CheckedNode&, BitLogic& logic, const Words& in) {
    return logic.choose(logic.sign(in[0]), logic.negated(in[0]), in[0]);
  };
  return meaning;
}

Meaning wrap_meaning() {
  Meaning meaning{.name = "wrap", .numbers = {"width", "signed"}};
  meaning.wrong = [](const CheckedNode& node, const Intervals&) -> std::string {
    if (!within(node.numbers[0], 1, 61)) return "its width is out of range";
    return within(node.numbers[1], 0, 1) ? "" : "signed is 0 or 1";
  };
  meaning.value = [](const int64_t* in, const CheckedNode& node) {
    return around(in[0], node.numbers[0], node.numbers[1] == 1);
  };
  meaning.interval = [](const CheckedNode& node, const Intervals& in) {
    const int64_t all = int64_t{1} << node.numbers[0];
    const Interval whole =
        node.numbers[1] == 1 ? Interval{-all / 2, all / 2 - 1} : Interval{0, all - 1};
    return whole.contains(in[0]) ? in[0] : whole;
  };
  meaning.logic = [](const CheckedNode& node, BitLogic& logic, const Words& in) {
    return LogicWord{logic.extended(in[0], static_cast<size_t>(node.numbers[0])).bits,
                     node.numbers[1] == 1};
  };
  return meaning;
}

Meaning compare_meaning() {
  Meaning meaning{.name = "compare", .operands = 2};
  meaning.value = [](const int64_t* in, const CheckedNode&) -> int64_t { return in[0] < in[1]; };
  meaning.interval = [](const CheckedNode&, const Intervals& in) {
    return Interval{in[0].high < in[1].low, in[0].low < in[1].high};
  };
  meaning.logic = [](const CheckedNode&, BitLogic& logic, const Words& in) {
    return LogicWord{{logic.less(in[0], in[1])}, false};
  };
  return meaning;
}

Meaning select_meaning() {
  Meaning meaning{.name = "select", .operands = 3};
  meaning.wrong = [](const CheckedNode&, const Intervals& in) -> std::string {
    return within(in[0].low, 0, 1) && within(in[0].high, 0, 1) ? ""
                                                               : "its condition is not one bit";
  };
  meaning.value = [](const int64_t* in, const CheckedNode&) { return in[0] ? in[1] : in[2]; };
  meaning.interval = [](const CheckedNode&, const Intervals& in) {
    return Interval{std::min(in[1].low, in[2].low), std::max(in[1].high, in[2].high)};
  };
  meaning.logic = [](const CheckedNode&, BitLogic& logic, const Words& in) {
    return logic.choose(logic.any(in[0]), in[1], in[2]);
  };
  return meaning;
}

Meaning multiply_meaning() {
  Meaning meaning{.name = "multiply", .operands = 2};
  meaning.value = [](const int64_t* in, const CheckedNode&) { return in[0] * in[1]; };
  meaning.interval = [](const CheckedNode&, const Intervals& in) {
    const auto [low, high] =
        std::minmax({exact_product(in[0].low, in[1].low), exact_product(in[0].low, in[1].high),
                     exact_product(in[0].high, in[1].low), exact_product(in[0].high, in[1].high)});
    return Interval{low, high};
  };
  return meaning;
}

}  // namespace

const std::vector<Meaning>& all_meanings() {
  static const std::vector<Meaning> all = {
      sum("constant", 0, {"value"}, false,
          [](const CheckedNode& node) {
            return SumMeaning{{}, node.numbers[0]};
          }),
      sum("register", 1, {}, false,
          [](const CheckedNode&) {
            return SumMeaning{{1}, 0};
          }),
      sum("negate", 1, {}, false,
          [](const CheckedNode&) {
            return SumMeaning{{-1}, 0};
          }),
      sum("invert", 1, {}, false,
          [](const CheckedNode&) {
            return SumMeaning{{-1}, -1};
          }),
      sum("scale", 1, {"factor", "frac"}, false,
          [](const CheckedNode& node) {
            return SumMeaning{{node.numbers[0]}, 0};
          }),
      sum(
          "shift", 1, {"amount"}, false,
          [](const CheckedNode& node) {
            return SumMeaning{{int64_t{1} << node.numbers[0]}, 0};
          },
          [](const CheckedNode& node, const Intervals&) -> std::string {
            return within(node.numbers[0], 0, most_shift) ? "" : "an amount is within 0 to 60";
          }),
      adder("add", false),
      adder("subtract", true),
      multiples("linear_sum", {"frac", "constant"}, true),
      multiples("chain", {"frac", "constant"}, true),
      multiples("small_sum", {"frac"}, false),
      sum(
          "popcount", -1, {}, false,
          [](const CheckedNode& node) {
            return SumMeaning{Numbers(node.inputs.size(), 1), 0};
          },
          [](const CheckedNode&, const Intervals& in) -> std::string {
            for (const Interval& one : in)
              if (one.low < 0 || one.high > 1) return "its operands are not single bits";
            return "";
          }),
      [] {
        Meaning meaning = rounding("floor", divided, floor_logic);
        meaning.is_slice = true;
        return meaning;
      }(),
      rounding("round_even", nearest_even, even_logic),
      rounding("round_away", nearest_away, away_logic),
      rounding("round_zero", toward_zero, zero_logic),
      clamp_meaning(),
      relu_meaning(),
      magnitude_meaning(),
      [] {
        Meaning meaning = wrap_meaning();
        meaning.is_slice = true;
        return meaning;
      }(),
      compare_meaning(),
      select_meaning(),
      multiply_meaning(),
      table_meaning(),
      join_meaning(),
  };
  return all;
}

const Meaning* find_meaning(const std::string& name) {
  for (const Meaning& meaning : all_meanings())
    if (meaning.name == name) return &meaning;
  return nullptr;
}

int64_t value_of(const CheckedNode& node, const int64_t* operands) {
  if (!node.op->sum) return node.op->value(operands, node);
  const SumMeaning sum = node.op->sum(node);
  int64_t total = sum.constant;
  for (size_t k = 0; k < sum.factors.size(); ++k)
    total = exact_sum(total, exact_product(sum.factors[k], operands[k]));
  return total;
}

Interval interval_of(const CheckedNode& node, const Intervals& operands) {
  if (!node.op->sum) return node.op->interval(node, operands);
  const SumMeaning sum = node.op->sum(node);
  Interval total{sum.constant, sum.constant};
  for (size_t k = 0; k < sum.factors.size(); ++k) {
    const int64_t a = exact_product(sum.factors[k], operands[k].low),
                  b = exact_product(sum.factors[k], operands[k].high);
    total = {exact_sum(total.low, std::min(a, b)), exact_sum(total.high, std::max(a, b))};
  }
  return total;
}

LogicWord logic_of(const CheckedNode& node, BitLogic& logic, const Words& operands) {
  if (!node.op->sum) return node.op->logic(node, logic, operands);
  const SumMeaning sum = node.op->sum(node);
  LogicWord total = logic.constant(sum.constant);
  for (size_t k = 0; k < sum.factors.size(); ++k) {
    const bool negative = sum.factors[k] < 0;
    const LogicWord one = negative ? logic.negated(operands[k]) : operands[k];
    uint64_t rest =
        negative ? -static_cast<uint64_t>(sum.factors[k]) : static_cast<uint64_t>(sum.factors[k]);
    for (size_t shift = 0; rest != 0; ++shift, rest >>= 1) {
      if ((rest & 1) == 0) continue;
      LogicWord term = one;
      term.bits.insert(term.bits.begin(), shift, DecisionDiagram::never);
      total = logic.sum(total, term);
    }
  }
  return total;
}

}  // namespace mase
