// SPDX-License-Identifier: Apache-2.0
// The integer graph: every row of the fixtures bit for bit before and after optimising, the
// vectorised interpreter against the plain one, the text form, and a verifier that sees faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "hardware/fixtures.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase::test::integer_graph_test {
namespace {

// Codes of the outputs at the fixture's common binary point.
std::vector<int64_t> at_fracs(const IntegerGraph& graph, std::vector<int64_t> codes,
                              const std::vector<int>& fracs) {
  for (size_t i = 0; i < codes.size(); ++i) {
    const size_t o = i % graph.outputs.size();
    const int wanted = fracs.size() == 1 ? fracs[0] : fracs[o];
    codes[i] *= int64_t{1} << (wanted - graph.at(graph.outputs[o]).frac);
  }
  return codes;
}

class Fixtures : public testing::TestWithParam<const char*> {};

TEST_P(Fixtures, every_row_bit_for_bit) {
  const Fixture fixture = read_fixture(golden_path("hardware"), GetParam());
  const IntegerGraph plain = fixture.plain;
  const Optimized optimized = optimize(plain);
  for (const IntegerGraph* graph : {&plain, &optimized.graph}) {
    EXPECT_EQ(at_fracs(*graph, interpret_reference(*graph, fixture.inputs), fixture.fracs),
              fixture.outputs);
    EXPECT_EQ(at_fracs(*graph, IntegerProgram(*graph).run(fixture.inputs), fixture.fracs),
              fixture.outputs);
  }
  EXPECT_LT(cost_of(optimized.graph).luts, 0.7 * cost_of(plain).luts);
}

TEST_P(Fixtures, same_seed_same_graph) {
  const IntegerGraph plain = read_fixture(golden_path("hardware"), GetParam()).plain;
  EXPECT_EQ(to_text(optimize(plain).graph), to_text(optimize(plain).graph));
}

TEST_P(Fixtures, text_reads_back) {
  const IntegerGraph graph =
      optimize(read_fixture(golden_path("hardware"), GetParam()).plain).graph;
  const std::string text = to_text(graph);
  EXPECT_EQ(to_text(integer_graph_from_text(text, "text")), text);
}

// A sign turned over anywhere is seen by the rows.
TEST_P(Fixtures, a_flipped_sign_is_seen) {
  const Fixture fixture = read_fixture(golden_path("hardware"), GetParam());
  const IntegerGraph graph = optimize(fixture.plain).graph;
  const std::vector<int64_t> right = interpret_reference(graph, fixture.inputs);
  int tried = 0;
  for (size_t i = 0; i < graph.nodes.size() && tried < 10; i += 17) {
    if (graph.nodes[i].op->name != "add") continue;
    ++tried;
    IntegerGraph faulty = graph;
    faulty.nodes[i].op = &integer_op("subtract");
    EXPECT_NE(interpret_reference(faulty, fixture.inputs), right) << i;
    // Linear forms see it without any row.
    EXPECT_NE(linear_forms(faulty)[i], linear_forms(graph)[i]);
  }
  EXPECT_GT(tried, 2);
}

INSTANTIATE_TEST_SUITE_P(hardware, Fixtures, testing::Values("w4_toy", "hgq_64_32_32_small"));

std::string fault_of(const IntegerGraph& graph) {
  try {
    verify(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(builder, operands_meet_at_one_binary_point) {
  IntegerBuilder builder("net");
  const IntegerId a = builder.input({-8, 7}, 2, "a"), b = builder.input({0, 15}, 1, "b");
  EXPECT_EQ(builder.at(builder.add(a, 0, b, 1)).range, (IntegerRange{-8, 37}));
  EXPECT_THROW(builder.add(a, 0, b, 0), Error);
}

TEST(verifier, sees_faults) {
  IntegerBuilder builder("net");
  const IntegerId a = builder.input({-8, 7}, 2, "a"), b = builder.input({0, 15}, 2, "b");
  const IntegerId sum = builder.add(a, 0, b, 0);
  builder.output(builder.round(builder.relu(sum), 1, IntegerRounding::nearest_even));
  const IntegerGraph graph = builder.finish();
  EXPECT_EQ(fault_of(graph), "");
  IntegerGraph late = graph;
  late.nodes[2].inputs[0] = 3;
  EXPECT_THAT(fault_of(late), testing::HasSubstr("not defined before"));
  IntegerGraph narrow = graph;
  narrow.nodes[2].range.high -= 1;
  EXPECT_THAT(fault_of(narrow), testing::HasSubstr("its values lie in"));
  IntegerGraph point = graph;
  point.nodes[3].frac += 1;
  EXPECT_THAT(fault_of(point), testing::HasSubstr("binary point"));
  IntegerGraph carry = graph;
  carry.nodes[2].numbers[2] = 2;
  EXPECT_THAT(fault_of(carry), testing::HasSubstr("carry"));
}

TEST(verifier, linear_forms_prove_narrower_intervals) {
  IntegerBuilder builder("net");
  const IntegerId a = builder.input({-8, 7}, 0, "a"), b = builder.input({-8, 7}, 0, "b");
  const IntegerId sum = builder.add(a, 0, b, 0), difference = builder.add(a, 0, b, 0, true);
  const IntegerId twice = builder.add(sum, 0, difference, 0);
  builder.narrow(twice, {-16, 14});
  builder.output(twice);
  EXPECT_NO_THROW(builder.finish());
}

TEST(text, faults_name_the_line) {
  const auto fault = [](const std::string& text) -> std::string {
    try {
      integer_graph_from_text(text, "t");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault("graph g\n%0 = input index=0 : frac 0 [0, 3] name x\noutput %0\n"), "");
  EXPECT_THAT(fault("graph g\n%0 = input index=0 : frac 0 [0, 3\noutput %0\n"),
              testing::StartsWith("t:2: "));
  EXPECT_THAT(fault("graph g\n%0 = inputt index=0 : frac 0 [0, 3]\noutput %0\n"),
              testing::HasSubstr("did you mean 'input'?"));
  EXPECT_THAT(fault("graph g\n%1 = input index=0 : frac 0 [0, 3]\n"), testing::StartsWith("t:2"));
  EXPECT_THAT(fault("graph g\n"), testing::HasSubstr("outputs are missing"));
  EXPECT_THAT(fault("output %4\n"), testing::HasSubstr("%4"));
}

// Formats of every rounding and overflow, all ties and extremes, against the definition in doubles.
RC_GTEST_PROP(requantize, is_the_definition, ()) {
  const int from_width = *rc::gen::inRange(2, 14), from_frac = *rc::gen::inRange(-2, 8);
  const bool from_signed = *rc::gen::arbitrary<bool>();
  const FixedFormat from{from_signed, from_width, from_frac};
  FixedFormat to{*rc::gen::arbitrary<bool>(), *rc::gen::inRange(1, 10), *rc::gen::inRange(-3, 8)};
  to.rounding = static_cast<IntegerRounding>(*rc::gen::inRange(0, 8));
  to.overflow = static_cast<IntegerOverflow>(*rc::gen::inRange(0, 2));
  IntegerBuilder builder("net");
  builder.output(builder.requantize(builder.input(from.range(), from.frac, "x"), to));
  const IntegerGraph graph = builder.finish();
  std::vector<int64_t> rows;
  for (int64_t code = from.range().low; code <= from.range().high; ++code) rows.push_back(code);
  const std::vector<int64_t> results = interpret_reference(graph, rows);
  RC_ASSERT(results == IntegerProgram(graph).run(rows));
  for (size_t i = 0; i < rows.size(); ++i) {
    const double x = std::ldexp(static_cast<double>(rows[i]), to.frac - from.frac);
    double code = 0;
    switch (to.rounding) {
      case IntegerRounding::half_up:
        code = std::floor(x + 0.5);
        break;
      case IntegerRounding::nearest_even:
        code = std::nearbyint(x);
        break;
      case IntegerRounding::half_away:
        code = std::round(x);
        break;
      case IntegerRounding::half_toward_zero:
        code = x < 0 ? std::floor(x + 0.5) : std::ceil(x - 0.5);
        break;
      case IntegerRounding::toward_zero:
        code = std::trunc(x);
        break;
      case IntegerRounding::away_from_zero:
        code = x < 0 ? std::floor(x) : std::ceil(x);
        break;
      case IntegerRounding::ceil:
        code = std::ceil(x);
        break;
      case IntegerRounding::floor:
        code = std::floor(x);
        break;
    }
    const IntegerRange range = to.range();
    int64_t wanted = static_cast<int64_t>(code);
    if (to.overflow == IntegerOverflow::saturate) {
      wanted = std::clamp(wanted, range.low, range.high);
    } else {
      const int64_t modulus = int64_t{1} << to.width;
      wanted = ((wanted - range.low) % modulus + modulus) % modulus + range.low;
    }
    const double value =
        std::ldexp(static_cast<double>(results[i]), to.frac - graph.at(graph.outputs[0]).frac);
    RC_ASSERT(value == static_cast<double>(wanted));
  }
}

TEST(interpreter, refuses_codes_outside) {
  IntegerBuilder builder("net");
  builder.output(builder.relu(builder.input({-8, 7}, 0, "x")));
  const IntegerGraph graph = builder.finish();
  const std::vector<int64_t> rows = {3, 8};
  EXPECT_THROW(interpret_reference(graph, rows), Error);
  EXPECT_THROW(IntegerProgram(graph).run(rows), Error);
  const std::vector<int64_t> huge = {int64_t{1} << 40};
  EXPECT_THROW(IntegerProgram(graph).run(huge), Error);
}

}  // namespace
}  // namespace mase::test::integer_graph_test
