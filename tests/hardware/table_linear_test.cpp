// SPDX-License-Identifier: Apache-2.0
// Networks of tables in integers: equal to the engine on every row, as lowered and as optimised;
// and refused where their edges are not rounded.
#include "mase/ops/table_linear.h"

#include <gtest/gtest.h>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/hardware/interpreter.h"
#include "mase/hardware/lower_graph.h"
#include "mase/hardware/optimize.h"
#include "mase/models/sequential.h"
#include "mase/passes/pass.h"
#include "support/support.h"

namespace mase::test {
namespace {

Graph network(bool rounded) {
  Sequential layers("tables", ModelInputs{}, {5}, 3);
  Dict attributes{{"rounded", rounded}, {"input_width", 5}, {"input_frac", 2}, {"output_frac", 3}};
  for (const auto& [in, out] : {std::pair{5, 4}, std::pair{4, 3}}) {
    attributes.set("in_features", in);
    attributes.set("out_features", out);
    layers.add("table_linear", attributes);
  }
  Graph graph = layers.finish();
  PassContext context;
  const Graph original = graph;
  context.original = &original;
  const Value config = parse_toml(
      "[passes.quantize]\nby = \"type\"\n[passes.quantize.default.config]\nname = \"NA\"\n"
      "[passes.quantize.table_linear.config]\nname = \"integer\"\ndata_in_width = 5\n"
      "data_in_frac_width = 2\ndata_in_rounding = \"half_up\"\ndata_in_overflow = \"wrap\"\n",
      "config");
  run_passes(graph, pass_calls(config["passes"], "passes"), context);
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

TEST(TableLinear, StraightLinesAreRefused) { EXPECT_THROW(lower(network(false)), Error); }

TEST(TableLinear, EdgesEndFlat) {
  const TableEdges edges(Dict{{"in_features", 1},
                              {"out_features", 1},
                              {"knots", 3},
                              {"input_width", 4},
                              {"input_frac", 1},
                              {"output_frac", 2},
                              {"rounded", true}});
  EXPECT_EQ(edges.low(), -4);
  EXPECT_EQ(edges.high(), 3.5);
  EXPECT_EQ(edges.rounded_input(0.25), 0.5);  // halves up
  EXPECT_EQ(edges.rounded_input(-0.25), 0);
  EXPECT_EQ(edges.rounded_input(1e30), 3.5);
  const double heights[] = {1, 0, 2};
  EXPECT_EQ(edges.output_code(heights, -9), 4);
  EXPECT_EQ(edges.output_code(heights, 9), 8);
}

}  // namespace
}  // namespace mase::test
