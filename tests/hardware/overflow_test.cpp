// SPDX-License-Identifier: Apache-2.0
// What wraps and what provably does not: every input that is said to wrap does, by the plain
// interpreter, and counts on rows are its counts.
#include "mase/hardware/prove/overflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/fixtures.h"

namespace mase::test::overflow_test {
namespace {

LoweredNetwork lowered_from(IntegerBuilder& builder, IntegerId value, const IntegerRange& format) {
  builder.output(value);
  LoweredNetwork network;
  network.graph = builder.graph();
  network.wrapping.push_back({"layer", 0, value, format});
  return network;
}

TEST(overflow, a_proof_where_the_interval_fits) {
  IntegerBuilder builder("net");
  const IntegerId x = builder.input({0, 3}, 0, "x");
  const LoweredNetwork network = lowered_from(builder, builder.add_constant(x, 1), {0, 7});
  const OverflowReport report = find_overflow(network, {0, 1, 2, 3}, "4 rows", 0);
  EXPECT_EQ(report.features, 1);
  EXPECT_EQ(report.proved, 1);
  EXPECT_EQ(report.rows_wrapped, 0);
  EXPECT_THAT(overflow_text(report), testing::HasSubstr("for all inputs"));
}

TEST(overflow, an_input_where_it_wraps_and_its_rate) {
  IntegerBuilder builder("net");
  const IntegerId x = builder.input({0, 3}, 0, "x");
  const LoweredNetwork network = lowered_from(builder, builder.scale(x, 3, 0), {0, 7});
  const OverflowReport report = find_overflow(network, {0, 1, 3, 3, 2}, "5 rows", 0);
  EXPECT_EQ(report.proved, 0);
  ASSERT_EQ(report.found(), 1);
  EXPECT_EQ(report.places[0].inputs, (std::vector<int64_t>{3}));
  EXPECT_EQ(report.places[0].reached, 9);
  EXPECT_EQ(report.rows_wrapped, 2);
  EXPECT_THAT(overflow_text(report), testing::HasSubstr("on 2 of 5 rows"));
}

// |x| as relu(x) + relu(-x): by intervals up to 8, in truth up to 4.
TEST(overflow, neither_proof_nor_input_is_said) {
  IntegerBuilder builder("net");
  const IntegerId x = builder.input({-4, 4}, 0, "x");
  const IntegerId sum = builder.add(builder.relu(x), 0, builder.relu(builder.negate(x)), 0);
  const LoweredNetwork network = lowered_from(builder, sum, {0, 7});
  const OverflowReport report = find_overflow(network, {}, "0 rows", 0);
  EXPECT_EQ(report.proved, 0);
  EXPECT_EQ(report.found(), 0);
  EXPECT_EQ(report.undecided(), 1);
  EXPECT_THAT(overflow_text(report), testing::HasSubstr("1 undecided"));
}

// A row that no drawn one comes near: all of eight inputs at one end.
TEST(overflow, inputs_are_pushed_to_where_it_wraps) {
  IntegerBuilder builder("net");
  IntegerId sum = builder.constant(0, 0);
  for (int i = 0; i < 8; ++i)
    sum =
        builder.add(sum, 0, builder.input({-1000, 1000}, 0, fmt::format("x{}", i)), 0, i % 2 == 1);
  const LoweredNetwork network = lowered_from(builder, sum, {-8000, 7999});
  std::vector<int64_t> middle(8, 0);
  const OverflowReport report = find_overflow(network, middle, "1 row", 0);
  ASSERT_EQ(report.found(), 1);
  EXPECT_EQ(report.places[0].reached, 8000);
  EXPECT_EQ(report.rows_wrapped, 0);
}

TEST(overflow, networks_that_saturate_have_none) {
  const Fixture fixture = read_fixture(golden_path("hardware"), "w4_toy");
  const OverflowReport report = find_overflow(lower(fixture.network), fixture.inputs, "rows", 0);
  EXPECT_EQ(report.features, 0);
  EXPECT_EQ(overflow_text(report), "");
}

TEST(overflow, every_example_wraps_by_the_plain_interpreter) {
  const Fixture fixture = read_fixture(golden_path("hardware"), "hgq_64_32_32_small");
  const LoweredNetwork network = lower(fixture.network);
  const size_t width = network.graph.inputs.size(), rows = 200;
  const std::vector<int64_t> inputs(fixture.inputs.begin(),
                                    fixture.inputs.begin() + static_cast<long>(rows * width));
  const OverflowReport report = find_overflow(network, inputs, "200 rows", 1);
  EXPECT_GT(report.features, 50);
  EXPECT_EQ(report.proved + static_cast<int64_t>(report.places.size()), report.features);
  EXPECT_GT(report.found(), 0);
  std::vector<IntegerId> values;
  for (const LoweredNetwork::Wrapping& one : network.wrapping)
    if (one.value >= 0) values.push_back(one.value);
  ASSERT_EQ(values.size(), report.places.size());
  int64_t wrapped = 0;
  for (size_t row = 0; row < rows; ++row) {
    const std::vector<int64_t> all = interpret_all(network.graph, inputs.data() + row * width);
    bool any = false;
    for (size_t p = 0; p < values.size(); ++p) {
      const int64_t value = all[static_cast<size_t>(values[p])];
      any = any || value < report.places[p].format.low || value > report.places[p].format.high;
    }
    wrapped += any;
  }
  EXPECT_EQ(wrapped, report.rows_wrapped);
  for (size_t p = 0; p < values.size(); ++p) {
    const OverflowPlace& place = report.places[p];
    if (place.inputs.empty()) continue;
    const int64_t value =
        interpret_all(network.graph, place.inputs.data())[static_cast<size_t>(values[p])];
    EXPECT_EQ(value, place.reached);
    EXPECT_TRUE(value < place.format.low || value > place.format.high);
  }
}

}  // namespace
}  // namespace mase::test::overflow_test
