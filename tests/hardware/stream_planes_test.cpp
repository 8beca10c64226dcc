// SPDX-License-Identifier: Apache-2.0
// Images in the stream style: the network's own numbers under random stalls however many clock
// cycles a window has, a row as often as the model says, faults seen, buffers as deep as they must
// be and no deeper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/plane_networks.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/hardware/stream/plan.h"
#include "mase/hardware/tools/tool.h"
#include "support/support.h"

namespace mase::test::stream_planes_test {
namespace {

std::string emitted(const Design& design, const DesignRows& rows) {
  std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, rows_of(design.graph, rows.inputs, "drawn"), {}));
  return folder;
}

Design streamed(const IntegerGraph& graph, int64_t cycles, const char* multipliers = "any") {
  return make_design(
      graph,
      {.style = "stream", .style_options = Dict{{"cycles", cycles}, {"multipliers", multipliers}}});
}

// Clock cycles of a simulation in which nothing stalls.
int64_t cycles_without_stalls(const std::string& folder) {
  EXPECT_EQ(simulate_folder(folder, "iverilog", "").mismatches, 0);
  const ToolResult result = run_tool({"vvp", "bench", "+nostall"}, folder + "/build/iverilog");
  const size_t at = result.output.find(" clock cycles");
  EXPECT_NE(at, std::string::npos) << result.output;
  const size_t line = result.output.rfind('\n', at);
  return std::stol(result.output.substr(line == std::string::npos ? 0 : line + 1, at));
}

TEST(stream_planes, same_numbers_under_random_stalls) {
  for (const auto& [name, graph] : plane_networks()) {
    const IntegerGraph lowered = lower(graph).graph;
    const int64_t least = default_cycles(stream_network(lowered));
    const DesignRows rows = random_rows(lowered, 12, 2);
    // One clock cycle for a window, some, and as many as its elements have bits.
    for (const int64_t cycles : sanitized ? std::vector<int64_t>{3 * least}
                                          : std::vector<int64_t>{least, 2 * least, 8 * least}) {
      SCOPED_TRACE(fmt::format("{}, {} cycles", name, cycles));
      const Design design = streamed(lowered, cycles, cycles == least ? "any" : "luts");
      EXPECT_GE(hold_to_lowered(design, lowered, rows), 12u);
      EXPECT_LE(design.emitted.interval, cycles);
      if (!tool_exists("iverilog")) continue;
      const Simulation result = simulate_folder(emitted(design, rows), "iverilog", "");
      EXPECT_EQ(result.rows, 12) << result.output;
      EXPECT_EQ(result.mismatches, 0) << result.output;
    }
  }
}

TEST(stream_planes, the_model_of_clock_cycles_is_the_hardware) {
  if (!tool_exists("iverilog")) GTEST_SKIP() << "iverilog is not installed";
  for (const auto& [name, graph] : plane_networks()) {
    const IntegerGraph lowered = lower(graph).graph;
    const int64_t least = default_cycles(stream_network(lowered));
    for (const int64_t cycles : {least, 5 * least}) {
      SCOPED_TRACE(fmt::format("{}, {} cycles", name, cycles));
      const Design design = streamed(lowered, cycles);
      const int64_t few = cycles_without_stalls(emitted(design, random_rows(lowered, 6, 1))),
                    many = cycles_without_stalls(emitted(design, random_rows(lowered, 26, 1)));
      EXPECT_EQ((many - few) / 20, design.emitted.interval);
      // The test ends when all of the last plane is taken, be its last results there before.
      const int64_t wanted = design.emitted.latency + 5 * design.emitted.interval;
      EXPECT_GE(few, wanted - 2);
      EXPECT_LE(few, wanted + (name == "no layer on a vector" ? 7 : 2));
    }
  }
}

TEST(stream_planes, buffers_are_as_deep_as_they_must_be) {
  const StreamNetwork network = stream_network(lower(plane_networks()[0].second).graph);
  StreamPlan plan = plan_stream(network, 0);
  ASSERT_EQ(plan.interval, default_cycles(network));
  for (size_t k = 0; k < plan.stages.size(); ++k)
    for (int64_t& buffer : plan.stages[k].buffers) {
      if (buffer <= 2) continue;
      --buffer;
      EXPECT_GT(run_timing(network, plan.stages, 0, false).interval, plan.interval) << k;
      ++buffer;
    }
}

TEST(stream_planes, faults_are_seen_and_lint_is_clean) {
  const IntegerGraph lowered = lower(plane_networks()[0].second).graph;
  const Design design = streamed(lowered, 4 * default_cycles(stream_network(lowered)), "luts");
  const std::string slow = emitted(design, random_rows(lowered, 20, 1));
  if (tool_exists("verilator")) {
    const ToolResult lint =
        run_tool({"sh", "-c", "verilator --lint-only -Wall --top-module top rtl/*.sv"}, slow);
    EXPECT_EQ(lint.exit_code, 0) << lint.output;
  }
  if (!tool_exists("iverilog")) GTEST_SKIP() << "iverilog is not installed";
  // A window each clock cycle, so that a result that does not wait is lost.
  const std::string quick = emitted(streamed(lowered, default_cycles(stream_network(lowered))),
                                    random_rows(lowered, 20, 1));
  const auto with = [&](const std::string& folder, const char* module, const std::string& from,
                        const std::string& to) {
    const std::string path = fmt::format("{}/rtl/{}.sv", folder, module), right = read(path);
    std::string wrong = right;
    const size_t at = wrong.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write(path, wrong.replace(at, from.size(), to));
    int64_t mismatches = 1;  // where rows are lost: fewer are compared than sent
    try {
      mismatches = simulate_folder(folder, "iverilog", "").mismatches;
    } catch (const Error&) {
    }
    write(path, right);
    return mismatches;
  };
  EXPECT_GT(with(quick, "seq_blocks_3", "done & (~data_out_0_valid | data_out_0_ready)", "done"),
            0);
  EXPECT_GT(with(slow, "seq_blocks_0", "lines[column] <= {above[", "lines[next_column] <= {above["),
            0);
  EXPECT_GT(
      with(slow, "seq_blocks_0", "have & (~hit | (step & last_digit))", "have & (~hit | step)"), 0);
  EXPECT_EQ(with(slow, "seq_blocks_0", "// Where the step is", "// where the step is"), 0);
}

TEST(stream_planes, too_few_cycles_are_refused_with_what_can_be) {
  const StreamNetwork network = stream_network(lower(plane_networks()[0].second).graph);
  try {
    plan_stream(network, 20);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("seq_blocks_0 passes over 36 positions"));
    EXPECT_THAT(error.what(), testing::HasSubstr("give at least 36"));
  }
}

}  // namespace
}  // namespace mase::test::stream_planes_test
