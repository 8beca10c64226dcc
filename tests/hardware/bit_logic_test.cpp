// SPDX-License-Identifier: Apache-2.0
// What operations mean bit by bit is what they compute, for drawn intervals and values with both
// ends; and equal functions are equal numbers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mase/hardware/graph/integer_graph.h"

namespace mase::test::bit_logic_test {
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

std::vector<int64_t> drawn_numbers(const IntegerOpRecord& op, const std::vector<IntegerRange>& in) {
  if (op.name == "join") {
    std::vector<int64_t> widths;
    for (const IntegerRange& range : in)
      widths.push_back(std::max(1, range.width()) + *rc::gen::inRange(0, 3));
    return widths;
  }
  if (op.numbers == std::vector<std::string>{"drop"}) return {*rc::gen::inRange<int64_t>(1, 14)};
  if (op.numbers == std::vector<std::string>{"low", "high"}) {
    const int64_t low = *rc::gen::inRange<int64_t>(-3000, 3000);
    return {low, low + *rc::gen::inRange<int64_t>(0, 5000)};
  }
  if (op.name == "chain") {
    std::vector<int64_t> numbers = {0, *rc::gen::inRange<int64_t>(-300, 300)};
    for (size_t k = 0; k < in.size(); ++k)
      numbers.push_back((*rc::gen::arbitrary<bool>() ? -1 : 1) << *rc::gen::inRange(0, 5));
    return numbers;
  }
  RC_ASSERT(op.numbers.empty());  // a new operation: say how its numbers are drawn
  return {};
}

RC_GTEST_PROP(bit_logic, operations_mean_what_they_compute, ()) {
  std::vector<const IntegerOpRecord*> records;
  for (const IntegerOpRecord* op : Registry<IntegerOpRecord>::instance().all())
    if (op->logic) records.push_back(op);
  const IntegerOpRecord& op = *records[*rc::gen::inRange<size_t>(0, records.size())];
  std::vector<IntegerRange> ranges;
  const size_t arity =
      op.arity < 0 ? *rc::gen::inRange<size_t>(1, 4) : static_cast<size_t>(op.arity);
  for (size_t k = 0; k < arity; ++k)
    ranges.push_back(op.name == "select" && k == 0 ? IntegerRange{0, 1} : drawn_range(12));
  IntegerNode node;
  node.op = &op;
  node.numbers = drawn_numbers(op, ranges);
  node.inputs.assign(arity, 0);
  const IntegerContext context{node, ranges, std::vector<int>(arity, 0),
                               std::vector<int>(arity, 0)};
  BitLogic logic;
  std::vector<LogicWord> words;
  int variables = 0;
  for (const IntegerRange& range : ranges) {
    words.push_back({{}, range.is_signed()});
    for (int k = 0; k < std::max(1, range.width()); ++k)
      words.back().bits.push_back(logic.diagram().variable(variables++));
  }
  const LogicWord result = logic.extended(op.logic(context, logic, words), 60);
  RC_ASSERT(!logic.diagram().is_full());
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<int64_t> codes;
    std::vector<bool> bits;
    for (const IntegerRange& range : ranges) {
      codes.push_back(trial == 0   ? range.low
                      : trial == 1 ? range.high
                                   : *rc::gen::inRange<int64_t>(range.low, range.high + 1));
      for (int k = 0; k < std::max(1, range.width()); ++k) bits.push_back(codes.back() >> k & 1);
    }
    int64_t found = 0;
    for (size_t k = 0; k < result.bits.size(); ++k)
      found |= static_cast<int64_t>(logic.diagram().value(result.bits[k], bits)) << k;
    if (found >> 59 & 1) found -= int64_t{1} << 60;
    RC_ASSERT(found == op.evaluate(codes.data(), node));
    for (size_t k = 0; k < codes.size(); ++k)
      RC_ASSERT(logic.diagram().value(logic.within(words[k], ranges[k].low, ranges[k].high), bits));
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
}  // namespace mase::test::bit_logic_test
