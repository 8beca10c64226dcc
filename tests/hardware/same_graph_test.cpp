// SPDX-License-Identifier: Apache-2.0
// What optimisers make of a network is proved to be the network, in every style and target; a fault
// of theirs is not, and the inputs that are shown for it are ones for which it differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "hardware/fixtures.h"
#include "mase/base/file.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/prove/certificate.h"
#include "mase/hardware/tools/tool.h"
#include "mase/hardware/verify/same_graph.h"

namespace mase::test::same_graph_test {
namespace {

using Answer = SameGraph::Answer;

CheckedGraph checked(const IntegerGraph& graph) {
  return read_checked_graph(to_text(graph), "graph");
}

SameGraph held(const IntegerGraph& network, const IntegerGraph& graph) {
  return same_graph(checked(network), checked(graph));
}

TEST(same_graph, every_style_is_the_network_for_all_inputs) {
  for (const char* name : {"w4_toy", "hgq_64_32_32_small"}) {
    const IntegerGraph plain = read_fixture(golden_path("hardware"), name).plain;
    for (const DesignOptions& options :
         {DesignOptions{}, DesignOptions{.effort = 0, .levels = 8, .argmax = true},
          DesignOptions{.target = "xcup", .effort = 0}}) {
      const Design design = make_design(plain, options);
      ASSERT_TRUE(design.network);
      const SameGraph same = held(*design.network, design.graph);
      EXPECT_EQ(same.answer, Answer::same) << name << options.target << same.reason;
      EXPECT_GT(same.tabulated + same.by_form, 20) << name;
    }
  }
}

// Small layers of every rounding and limit, whose neurons become tables.
IntegerGraph few_bits(uint64_t seed, bool wide) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  IntegerBuilder builder("few");
  std::vector<IntegerId> values;
  for (int i = 0; i < 4; ++i)
    values.push_back(builder.input(wide ? IntegerRange{-3000, 2999} : IntegerRange{-2, 1}, 0,
                                   fmt::format("x_{}", i)));
  for (int layer = 0; layer < 2; ++layer) {
    builder.add_layer(fmt::format("layer{}", layer));
    std::vector<IntegerId> next;
    for (int o = 0; o < 3; ++o) {
      std::vector<int64_t> numbers = {0, draw(-5, 5)};
      for (size_t k = 0; k < values.size(); ++k) numbers.push_back(draw(-3, 3));
      if (numbers[2] == 0) numbers[2] = 1;
      IntegerId value = builder.node("linear_sum", values, numbers);
      const int64_t kind = draw(0, 4);
      if (kind == 0) value = builder.relu(value);
      if (kind <= 1)
        value = builder.round(builder.add_constant(value, 1), 1, IntegerRounding::floor);
      if (kind == 2) value = builder.round(value, 1, IntegerRounding::nearest_even);
      if (kind == 3) value = builder.node("round_zero", {value}, {1});
      value = builder.clamp(value, kind == 4 ? -2 : 0, wide ? 1000 : 3);
      next.push_back(builder.aligned(value, 0));
    }
    values = std::move(next);
  }
  for (const IntegerId value : values) builder.output(value);
  return builder.finish();
}

TEST(same_graph, roundings_limits_and_tables_are_followed) {
  for (uint64_t seed = 0; seed < 12; ++seed)
    for (const bool wide : {false, true}) {
      const IntegerGraph plain = few_bits(seed, wide);
      for (const DesignOptions& options :
           {DesignOptions{}, DesignOptions{.target = "xcup"}, DesignOptions{.style = "lut"}}) {
        if (wide && options.style == "lut") continue;
        const Design design = make_design(plain, options);
        const SameGraph same = held(plain, design.graph);
        EXPECT_EQ(same.answer, Answer::same)
            << seed << wide << options.style << options.target << ": " << same.reason << "\n"
            << to_text(plain) << to_text(design.graph);
      }
    }
}

// How many planted faults changed some of the rows; all of these must be shown to.
int faults_shown(const IntegerGraph& plain, int faults, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::string right = to_text(make_design(plain, {}).graph);
  const DesignRows rows = random_rows(plain, 4000, 9);
  std::vector<size_t> places;
  for (size_t at = 1; at < right.size(); ++at)
    if (right[at] >= '0' && right[at] <= '9' && (right[at - 1] == '=' || right[at - 1] == '%'))
      places.push_back(at);
  int different = 0;
  for (int fault = 0; fault < faults; ++fault) {
    // A digit somewhere behind a '=' is another one.
    std::string text = right;
    char& digit = text[places[random() % places.size()]];
    digit = static_cast<char>('0' + (digit - '0' + 1 + static_cast<int>(random() % 8)) % 10);
    IntegerGraph graph;
    try {
      graph = integer_graph_from_text(text, "fault");
      checked(graph);
    } catch (const Error&) {
      continue;  // intervals or points that cannot be
    }
    const SameGraph same = held(plain, graph);
    const bool equal = graph.inputs.size() == plain.inputs.size() &&
                       graph.outputs.size() == plain.outputs.size() &&
                       interpret_reference(graph, rows.inputs) == rows.outputs;
    if (equal) continue;
    ++different;
    EXPECT_EQ(same.answer, Answer::different) << text;
  }
  return different;
}

TEST(same_graph, a_fault_is_never_the_same) {
  EXPECT_GT(faults_shown(few_bits(3, false), 300, 5) + faults_shown(few_bits(3, true), 300, 6), 20);
  EXPECT_GT(faults_shown(read_fixture(golden_path("hardware"), "w4_toy").plain, 300, 7), 5);
}

// From the folder: a graph that is not the network is refused even where the text is that graph.
TEST(same_graph, a_folder_with_a_fault_of_the_optimiser_is_refused) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  Design design = make_design(few_bits(3, true), {});
  IntegerBuilder builder("other");  // the same with another constant behind an output
  IntegerGraph other = design.graph;
  for (IntegerNode& node : other.nodes)
    if (node.op->name == "clamp") {
      node.numbers[1] -= 1;
      node.range.high = std::min(node.range.high, node.numbers[1]);
    }
  design.graph = integer_graph_from_text(to_text(other), "fault");
  design.emitted = emit_unrolled(design.graph, {"top", Dict{{"valid", false}}});
  const std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, random_rows(design.graph, 4, 1), {}));
  const ModuleProof proof = check_modules(folder_claims(folder), folder)[0].proof;
  EXPECT_THAT(proof.fault, testing::HasSubstr("its graph is not the network"));
  EXPECT_THAT(proof.fault, testing::HasSubstr("for the inputs"));
}

}  // namespace
}  // namespace mase::test::same_graph_test
