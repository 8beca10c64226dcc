// SPDX-License-Identifier: Apache-2.0
// Tables that one sum adds up as wider ones, and weightless layers in integers: the same function
// on drawn rows and by proof, fewer tables, fewer look-up tables than without.
#include "mase/hardware/carry/join_tables.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/hardware/tools/tool.h"
#include "mase/models/sequential.h"
#include "support/support.h"

namespace mase::test::join_tables_test {
namespace {

Graph narrow_tables() {
  Sequential layers("narrow", ModelInputs{}, {9}, 3);
  for (const auto& [in, out] : {std::pair{9, 5}, std::pair{5, 3}})
    layers.add("table_linear", Dict{{"in_features", in},
                                    {"out_features", out},
                                    {"input_width", 6},
                                    {"input_frac", 3},
                                    {"output_frac", 3},
                                    {"rounded", true},
                                    {"overflow", in == 9 ? "saturate" : "wrap"}});
  Graph graph = layers.finish();
  Random random(5, "widths");
  for (auto& [path, module] : graph.modules())
    if (module.find("edge_bits"))
      for (int64_t k = 0; k < module.find("edge_bits")->numel(); ++k) {
        module.find("edge_bits")->mutable_data<float>()[k] = static_cast<float>(random.below(5));
        module.find("edge_frac")->mutable_data<float>()[k] =
            static_cast<float>(random.below(3)) + 2;
        for (int64_t i = 0; i < 9; ++i)
          module.find("heights")->mutable_data<float>()[k * 9 + i] =
              static_cast<float>(random.normal());
      }
  return graph;
}

int64_t count_of(const IntegerGraph& graph, const std::string& op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const IntegerNode& node) { return node.op->name == op; });
}

TEST(join_tables, fewer_tables_of_the_same_sums) {
  const LoweredNetwork lowered = lower(narrow_tables());
  const IntegerGraph joined = with_joined_tables(lowered.graph);
  verify(joined);
  EXPECT_LT(count_of(joined, "table"), count_of(lowered.graph, "table"));
  for (const IntegerNode& node : joined.nodes) {
    if (node.op->name == "table") {
      EXPECT_LE(joined.at(node.inputs[0]).range.width(), 6);
    }
  }
  const DesignRows rows = random_rows(lowered.graph, 3000, 1);
  EXPECT_EQ(interpret_reference(joined, rows.inputs),
            interpret_reference(lowered.graph, rows.inputs));
}

TEST(join_tables, chains_of_joined_tables_cost_less_and_are_proved) {
  const LoweredNetwork lowered = lower(narrow_tables());
  const Design design = make_design(lowered.graph, {.target = "xcup"}),
               plain = make_design(lowered.graph, {});
  EXPECT_LT(estimate(design).luts, 0.8 * estimate(plain).luts);
  const DesignRows rows = random_rows(lowered.graph, 1000, 2);
  EXPECT_GT(hold_to_lowered(design, lowered.graph, rows), 1000u);
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, rows, Dict{}));
  EXPECT_NO_THROW(prove_folder(design, folder));
}

// A feature of three bits with two thresholds, tables that read a bit twice, and constants.
Graph weightless() {
  Graph graph;
  graph.name = "weightless";
  NodeId x = graph.add_placeholder("x", {7});
  const auto add = [&](const char* path, const char* op, const Dict& attributes) {
    x = graph.add_module(path, make_module(op, attributes, 0, path), {x});
  };
  add("bits", "thermometer",
      Dict{{"in_features", 7}, {"levels", 2}, {"input_width", 3}, {"input_frac", 1}});
  add("tables", "lut_layer", Dict{{"in_features", 14}, {"out_features", 30}, {"inputs", 5}});
  add("counts", "group_sum", Dict{{"in_features", 30}, {"groups", 3}});
  graph.add_output({x});
  Random random(7, "weightless");
  float* const thresholds = graph.modules().at("bits").find("thresholds")->mutable_data<float>();
  for (int i = 0; i < 14; ++i) thresholds[i] = static_cast<float>(random.uniform(0, 4));
  Module& tables = graph.modules().at("tables");
  for (int i = 0; i < 150; ++i)
    tables.find("wiring")->mutable_data<float>()[i] = static_cast<float>(random.below(14));
  for (int i = 0; i < 960; ++i)
    tables.find("entries")->mutable_data<float>()[i] =
        i < 32 ? 1.0f : static_cast<float>(random.below(2));
  graph.modules().at("counts").find("weights")->mutable_data<float>()[4] = 2;
  return graph;
}

TEST(weightless_lowering, integers_are_the_engines) {
  const Graph graph = weightless();
  const LoweredNetwork lowered = lower(graph);
  Tensor x({1000, 7});
  Random random(8, "rows");
  for (int64_t k = 0; k < x.numel(); ++k)
    x.mutable_data<float>()[k] = static_cast<float>(random.uniform(-1, 5));
  const Tensor wanted = run(graph, {x})[0];
  const std::vector<int64_t> codes = input_codes(lowered, {x});
  for (const std::string target : {"generic", "xcup"}) {
    const Design design = make_design(lowered.graph, {.target = target});
    const std::vector<double> values =
        output_values(design.graph, interpret_reference(design.graph, codes));
    ASSERT_EQ(values.size(), static_cast<size_t>(wanted.numel()));
    for (size_t k = 0; k < values.size(); ++k)
      ASSERT_EQ(values[k], static_cast<double>(wanted.data<float>()[k])) << target << k;
  }
}

TEST(weightless_lowering, tables_of_what_are_no_bits_are_refused) {
  Graph graph;
  graph.name = "none";
  NodeId x = graph.add_placeholder("x", {4});
  x = graph.add_module(
      "sums",
      make_module("table_linear", Dict{{"in_features", 4}, {"out_features", 4}, {"rounded", true}},
                  0, "sums"),
      {x});
  x = graph.add_module(
      "tables",
      make_module("lut_layer", Dict{{"in_features", 4}, {"out_features", 2}, {"inputs", 2}}, 0,
                  "tables"),
      {x});
  graph.add_output({x});
  EXPECT_THROW(lower(graph), Error);
}

}  // namespace
}  // namespace mase::test::join_tables_test
