// SPDX-License-Identifier: Apache-2.0
// Networks of tables in integers: equal to the engine on every row, as lowered and as optimised;
// and refused where their edges are not rounded.
#include "mase/ops/table_linear.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/hardware/optimize/optimize.h"
#include "mase/models/sequential.h"
#include "support/support.h"

namespace mase::test::table_linear_test {
namespace {

Graph network(bool rounded) {
  Sequential layers("tables", ModelInputs{}, {5}, 3);
  Dict attributes{{"rounded", rounded}, {"input_width", 5}, {"input_frac", 2}, {"output_frac", 3}};
  for (const auto& [in, out] : {std::pair{5, 4}, std::pair{4, 3}}) {
    attributes.set("in_features", in);
    attributes.set("out_features", out);
    attributes.set("overflow", in == 4 ? "wrap" : "saturate");
    if (in == 4) attributes.set("input_frac", 4);  // so that sums do leave the codes
    layers.add("table_linear", attributes);
  }
  Graph graph = layers.finish();
  // Every edge has widths of its own, some none.
  Random random(5, "widths");
  for (auto& [path, module] : graph.modules())
    if (module.find("edge_bits"))
      for (int64_t k = 0; k < module.find("edge_bits")->numel(); ++k) {
        module.find("edge_bits")->mutable_data<float>()[k] = static_cast<float>(random.below(6));
        module.find("edge_frac")->mutable_data<float>()[k] =
            static_cast<float>(random.below(4)) + 1;
      }
  return graph;
}

TEST(TableLinear, IntegersAreTheEngines) {
  const Graph graph = network(true);
  const LoweredNetwork lowered = lower(graph);
  const IntegerGraph optimised = optimize(lowered.graph).graph;
  Tensor rows({2000, 5});
  Random random(3, "rows");
  for (int64_t i = 0; i < rows.numel(); ++i)
    rows.mutable_data<float>()[i] = static_cast<float>(random.normal() * 3);
  const std::vector<int64_t> codes = input_codes(lowered, {rows});
  const Tensor wanted = run(graph, {rows})[0];
  for (const IntegerGraph* one : {&lowered.graph, &optimised}) {
    const std::vector<double> values = output_values(*one, interpret_reference(*one, codes));
    ASSERT_EQ(values.size(), static_cast<size_t>(wanted.numel()));
    int64_t different = 0, first = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      different += values[i] != static_cast<double>(wanted.data<float>()[i]);
      first += values[i] != values[0];
    }
    EXPECT_EQ(different, 0);
    EXPECT_GT(first, 1000);  // not all alike
  }
}

TEST(TableLinear, ANeuronThatReadsNothingIsAConstant) {
  Graph graph = network(true);
  for (auto& [path, module] : graph.modules())
    if (module.find("edge_bits"))
      for (int64_t i = 0; i < module.find("edge_bits")->shape()[1]; ++i)
        module.find("edge_bits")->mutable_data<float>()[i] = 0;
  const LoweredNetwork lowered = lower(graph);
  Tensor rows({1, 5});
  std::fill_n(rows.mutable_data<float>(), 5, 0.5F);
  const Tensor wanted = run(graph, {rows})[0];
  const std::vector<double> values = output_values(
      lowered.graph, interpret_reference(lowered.graph, input_codes(lowered, {rows})));
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], static_cast<double>(wanted.data<float>()[i]));
}

TEST(TableLinear, StraightLinesAreRefused) { EXPECT_THROW(lower(network(false)), Error); }

TEST(TableLinear, EdgesEndFlat) {
  const TableEdges edges(Dict{{"in_features", 1},
                              {"out_features", 1},
                              {"knots", 3},
                              {"input_width", 4},
                              {"input_frac", 1},
                              {"output_frac", 2},
                              {"rounded", true},
                              {"overflow", "saturate"}});
  EXPECT_EQ(edges.low(), -4);
  EXPECT_EQ(edges.high(), 3.5);
  EXPECT_EQ(edges.value_of(edges.code_of(0.25)), 0.5);  // halves up
  EXPECT_EQ(edges.value_of(edges.code_of(-0.25)), 0);
  EXPECT_EQ(edges.value_of(edges.code_of(1e30)), 3.5);
  const double heights[] = {1, 0, 2};
  EXPECT_EQ(edges.entry(heights, 0, {4, 2}), 4);
  EXPECT_EQ(edges.entry(heights, 15, {4, 2}), 8);
  // No bits: the middle for all; one: the middles of both halves.
  EXPECT_EQ(edges.middle(3, 0), edges.middle(12, 0));
  EXPECT_EQ(edges.middle(3, 0), -0.25);
  EXPECT_EQ(edges.middle(3, 1), -2.25);
  EXPECT_EQ(edges.middle(3, 4), -2.5);
}

}  // namespace
}  // namespace mase::test::table_linear_test
