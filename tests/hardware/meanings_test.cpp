// SPDX-License-Identifier: Apache-2.0
// The checker's own meanings are those of the operations' records: values, intervals, and bit by
// bit, for drawn operands with both ends. Equal functions are equal numbers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mase/hardware/graph/integer_graph.h"
#include "mase/hardware/verify/meanings.h"

namespace mase::test::meanings_test {
namespace {

IntegerRange drawn_range(int most_bits) {
  const int bits = *rc::gen::inRange(1, most_bits + 1);
  const int64_t limit = int64_t{1} << bits;
  const bool is_signed = *rc::gen::arbitrary<bool>();
  const int64_t low =
      is_signed ? *rc::gen::inRange<int64_t>(-limit / 2, 1) : *rc::gen::inRange<int64_t>(0, limit);
  return {low,
          *rc::gen::inRange<int64_t>(std::max<int64_t>(low, 0), is_signed ? limit / 2 : limit)};
}

int64_t drawn(int64_t low, int64_t high) { return *rc::gen::inRange<int64_t>(low, high + 1); }

std::vector<int64_t> drawn_numbers(const Meaning& op, const std::vector<IntegerRange>& in) {
  std::vector<int64_t> numbers;
  if (op.name == "join") {
    for (const IntegerRange& range : in)
      numbers.push_back(std::max(1, range.width()) + drawn(0, 2));
    return numbers;
  }
  if (op.name == "table") {
    numbers = {in[0].low - drawn(0, 2), 0};
    for (int64_t k = numbers[0]; k <= in[0].high + 2; ++k) numbers.push_back(drawn(-99, 99));
    return numbers;
  }
  for (const std::string& name : op.numbers) {
    if (name == "drop" || name == "width") numbers.push_back(drawn(1, 14));
    if (name == "shift_a" || name == "shift_b" || name == "amount") numbers.push_back(drawn(0, 9));
    if (name == "carry" || name == "signed") numbers.push_back(drawn(0, 1));
    if (name == "low" || name == "factor" || name == "value" || name == "constant")
      numbers.push_back(drawn(-3000, 3000));
    if (name == "high") numbers.push_back(numbers[0] + drawn(0, 5000));
    if (name == "frac") numbers.push_back(0);
  }
  RC_ASSERT(numbers.size() == op.numbers.size());  // a new name: say how it is drawn
  if (op.more_numbers)
    for (size_t k = 0; k < in.size(); ++k)
      numbers.push_back(op.name == "chain" ? (drawn(0, 1) ? -1 : 1) * (int64_t{1} << drawn(0, 5))
                                           : drawn(-40, 40));
  return numbers;
}

TEST(meanings, there_is_one_for_every_operation) {
  for (const IntegerOpRecord* op : Registry<IntegerOpRecord>::instance().all()) {
    if (!op->evaluate) continue;  // inputs
    const Meaning* meaning = find_meaning(op->name);
    ASSERT_NE(meaning, nullptr) << op->name;
    EXPECT_EQ(meaning->numbers, op->numbers) << op->name;
    EXPECT_EQ(meaning->operands, op->arity) << op->name;
    EXPECT_EQ(meaning->more_numbers, op->more_numbers) << op->name;
  }
}

RC_GTEST_PROP(meanings, are_what_the_records_compute, ()) {
  const std::vector<Meaning>& all = all_meanings();
  const Meaning& meaning = all[*rc::gen::inRange<size_t>(0, all.size())];
  const IntegerOpRecord& op = integer_op(meaning.name);
  const std::string name = op.name;
  const int bits = name == "small_sum" ? 2 : name == "table" ? 7 : 12;
  std::vector<IntegerRange> ranges;
  const size_t arity = op.arity >= 0     ? static_cast<size_t>(op.arity)
                       : name == "chain" ? static_cast<size_t>(drawn(2, 3))
                                         : static_cast<size_t>(drawn(1, 3));
  for (size_t k = 0; k < arity; ++k)
    ranges.push_back(name == "popcount" || (name == "select" && k == 0) ? IntegerRange{0, 1}
                                                                        : drawn_range(bits));
  IntegerNode node;
  node.op = &op;
  node.numbers = drawn_numbers(meaning, ranges);
  node.inputs.assign(arity, 0);
  const IntegerContext context{node, ranges, std::vector<int>(arity, 0),
                               std::vector<int>(arity, 0)};
  CheckedNode mine{&meaning, {}, node.numbers, {}, 0};
  mine.inputs.assign(arity, 0);
  std::vector<Interval> intervals;
  for (const IntegerRange& range : ranges) intervals.push_back({range.low, range.high});
  const IntegerRange range = op.range(context);
  RC_ASSERT(interval_of(mine, intervals) == (Interval{range.low, range.high}));
  // Products grow beyond a diagram.
  const bool by_bits = (meaning.logic || meaning.sum) && name != "linear_sum";
  BitLogic logic;
  std::vector<LogicWord> words;
  int variables = 0;
  for (const IntegerRange& one : ranges) {
    words.push_back({{}, one.is_signed()});
    for (int k = 0; k < std::max(1, one.width()); ++k)
      words.back().bits.push_back(logic.diagram().variable(variables++));
  }
  LogicWord result;
  if (by_bits) result = logic.extended(logic_of(mine, logic, words), 60);
  RC_ASSERT(!logic.diagram().is_full());
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<int64_t> codes;
    std::vector<bool> given;
    for (const IntegerRange& one : ranges) {
      codes.push_back(trial == 0 ? one.low : trial == 1 ? one.high : drawn(one.low, one.high));
      for (int k = 0; k < std::max(1, one.width()); ++k) given.push_back(codes.back() >> k & 1);
    }
    const int64_t wanted = op.evaluate(codes.data(), node);
    RC_ASSERT(value_of(mine, codes.data()) == wanted);
    int64_t found = 0;
    for (size_t k = 0; k < result.bits.size(); ++k)
      found |= static_cast<int64_t>(logic.diagram().value(result.bits[k], given)) << k;
    if (found >> 59 & 1) found -= int64_t{1} << 60;
    RC_ASSERT(!by_bits || found == wanted);
    for (size_t k = 0; k < codes.size(); ++k)
      RC_ASSERT(
          logic.diagram().value(logic.within(words[k], ranges[k].low, ranges[k].high), given));
  }
}

TEST(decision_diagram, equal_functions_are_equal_and_examples_hold) {
  DecisionDiagram d;
  const Decision a = d.variable(0), b = d.variable(1), c = d.variable(2);
  EXPECT_EQ(d.either(a, b), d.inverse(d.both(d.inverse(a), d.inverse(b))));
  EXPECT_EQ(d.differ(a, d.differ(b, a)), b);
  EXPECT_EQ(d.choose(a, b, b), b);
  EXPECT_EQ(d.both(a, d.inverse(a)), DecisionDiagram::never);
  const Decision odd = d.both(d.differ(a, b), d.inverse(c));
  const std::vector<bool> example = d.example(odd, 3);
  EXPECT_TRUE(d.value(odd, example));
  EXPECT_NE(example[0], example[1]);
  EXPECT_FALSE(example[2]);
}

}  // namespace
}  // namespace mase::test::meanings_test
