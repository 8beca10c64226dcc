// SPDX-License-Identifier: Apache-2.0
// Convolutions, pools, means, sequences and moves in integers: the lowered graph is held to the
// engine on rows, the optimised one to it, and the emitted text is simulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hardware/plane_networks.h"
#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/hardware/tools/tool.h"
#include "support/support.h"

namespace mase::test::windows_test {
namespace {

// Engine = integers on every row; nothing is rounded in between.
void hold_to_engine(const Graph& graph, const LoweredNetwork& lowered) {
  const int64_t rows = 40;
  Shape shape = graph.node(graph.placeholders().at(0)).sample_shape;
  shape.insert(shape.begin(), rows);
  Tensor x(shape);
  Random random(3, "windows");
  for (int64_t i = 0; i < x.numel(); ++i)
    x.mutable_data<float>()[i] = static_cast<float>(2 * random.normal());
  const std::vector<double> mine =
      output_values(lowered.graph, IntegerProgram(lowered.graph).run(input_codes(lowered, {x})));
  const NodeId output = graph.outputs().at(0);
  size_t compared = 0;
  run_observed(graph, {x}, {output}, rows, [&](NodeId, const Tensor& result) {
    ASSERT_EQ(static_cast<size_t>(result.numel()), mine.size());
    for (size_t i = 0; i < mine.size(); ++i, ++compared)
      ASSERT_EQ(mine[i], result.item(static_cast<int64_t>(i))) << "value " << i;
  });
  EXPECT_EQ(compared, mine.size());
}

TEST(windows, integers_are_the_engine) {
  for (const auto& [name, graph] : plane_networks()) {
    SCOPED_TRACE(name);
    hold_to_engine(graph, lower(graph));
  }
}

TEST(windows, optimised_and_emitted_are_the_lowered) {
  for (const auto& [name, graph] : plane_networks()) {
    SCOPED_TRACE(name);
    const LoweredNetwork lowered = lower(graph);
    const Design design = make_design(lowered.graph, {});
    const DesignRows rows = random_rows(lowered.graph, 30, 2);
    EXPECT_GE(hold_to_lowered(design, lowered.graph, rows), 30u);
    if (!tool_exists("iverilog")) continue;
    const std::string folder = temporary_folder() + "/design";
    write_design(folder, design_files(design, rows_of(design.graph, rows.inputs, "drawn"), {}));
    const Simulation result = simulate_folder(folder, "iverilog", "");
    EXPECT_EQ(result.rows, 30) << result.output;
    EXPECT_EQ(result.mismatches, 0) << result.output;
  }
}

TEST(windows, what_has_no_integers_is_refused_in_a_line) {
  const auto message = [](const Graph& graph) -> std::string {
    try {
      lower(graph);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Layer conv{"conv2d", {{"in_channels", 1}, {"out_channels", 2}, {"kernel_size", 2}}};
  EXPECT_NE(message(network_of({1, 7, 7}, {conv, {"avg_pool2d", {{"kernel_size", 3}}}}))
                .find("a mean of 9 values is no exact integer"),
            std::string::npos);
}

}  // namespace
}  // namespace mase::test::windows_test
