// SPDX-License-Identifier: Apache-2.0
// Parts of sums as tables: the same function, cheaper where values have few bits, proved, and a
// wrong entry is seen.
#include "mase/hardware/optimize/small_sums.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/tools/tool.h"
#include "support/support.h"

namespace mase::test::small_sums_test {
namespace {

RC_GTEST_PROP(small_sums_property, a_grouped_product_is_the_same, ()) {
  CmvmProblem problem;
  const size_t inputs = *rc::gen::inRange<size_t>(1, 12), outputs = *rc::gen::inRange<size_t>(1, 8);
  for (size_t i = 0; i < inputs; ++i) {
    const int64_t low = *rc::gen::element<int64_t>(0, 0, -1, -2, 3);
    problem.inputs.push_back({low, low + *rc::gen::element<int64_t>(0, 1, 1, 3, 7)});
    problem.weights.emplace_back();
    for (size_t o = 0; o < outputs; ++o)
      problem.weights.back().push_back(*rc::gen::element<int64_t>(0, 1, -1, 2, -6, 5));
  }
  const auto grouped = group_narrow_inputs(problem, *rc::gen::inRange(1, 4));
  if (!grouped) return;
  // Every weight is there once: those that stay, and factors of parts.
  std::vector<std::vector<int64_t>> sum(inputs, std::vector<int64_t>(outputs, 0));
  for (size_t o = 0; o < outputs; ++o) {
    for (size_t k = 0; k < grouped->kept.size(); ++k)
      sum[grouped->kept[k]][o] += grouped->problem.weights[k][o];
    for (size_t p = 0; p < grouped->parts.size(); ++p)
      for (size_t k = 0; k < grouped->parts[p].inputs.size(); ++k)
        sum[grouped->parts[p].inputs[k]][o] +=
            grouped->parts[p].factors[k] * grouped->problem.weights[grouped->kept.size() + p][o];
  }
  RC_ASSERT(sum == problem.weights);
}

// A layer of single bits with weights of 1 and -1, and thresholds.
IntegerGraph binary_layer(int inputs, int outputs) {
  std::mt19937 random(7);
  IntegerBuilder builder("binary");
  std::vector<IntegerId> bits;
  for (int i = 0; i < inputs; ++i) bits.push_back(builder.input({0, 1}, 0, fmt::format("x_{}", i)));
  builder.add_layer("layer0");
  for (int o = 0; o < outputs; ++o) {
    IntegerId sum = builder.constant(0, 0);
    for (const IntegerId bit : bits)
      sum = builder.add(sum, 0, builder.scale(bit, random() % 2 ? 1 : -1, 0), 0);
    builder.output(builder.compare(builder.constant(0, 0), sum));
  }
  return builder.finish();
}

int64_t small_sums(const IntegerGraph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [](const IntegerNode& node) { return node.op->name == "small_sum"; });
}

// Many outputs share additions of pairs, which is cheaper than tables of their own.
TEST(small_sums, are_left_out_where_sharing_is_cheaper) {
  const IntegerGraph graph = binary_layer(36, 8);
  const IntegerGraph optimized = make_design(graph, {}).graph;
  EXPECT_EQ(small_sums(optimized), 0);
  EXPECT_NEAR(estimate(optimized).luts, 175, 26);  // Yosys
}

TEST(small_sums, single_bits_are_counted_by_compressors) {
  const IntegerGraph graph = binary_layer(36, 2);
  const Design design = make_design(graph, {});
  EXPECT_GE(small_sums(design.graph), 12);
  const DesignRows rows = random_rows(graph, 300, 0);
  EXPECT_EQ(interpret_reference(design.graph, rows.inputs), rows.outputs);
  // Yosys has 81. 35 additions for each output would take about 70 each.
  EXPECT_NEAR(estimate(design.graph).luts, 81, 12);
  EXPECT_EQ(to_text(integer_graph_from_text(to_text(design.graph), "text")), to_text(design.graph));
}

TEST(small_sums, are_proved_and_a_wrong_entry_is_seen) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const Design design = make_design(binary_layer(18, 1), {});
  ASSERT_GT(small_sums(design.graph), 0);
  const std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, random_rows(design.graph, 64, 0), {}));
  EXPECT_EQ(prove_folder(design, folder).fault, "");
  const std::string path = folder + "/rtl/top.sv";
  std::string text = read(path);
  const size_t at = text.find("'h", text.find("localparam"));
  ASSERT_NE(at, std::string::npos);
  text[at + 3] = text[at + 3] == '0' ? '1' : '0';
  write(path, text);
  EXPECT_NE(prove_folder(design, folder).fault, "");
}

}  // namespace
}  // namespace mase::test::small_sums_test
