// SPDX-License-Identifier: Apache-2.0
// The stream style: the same function under random stalls whatever the parallelism, a row as often
// as it says, faults seen, and what has another form refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/fixtures.h"
#include "hardware/variants.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/stream/plan.h"
#include "mase/hardware/tools/tool.h"
#include "mase/models/sequential.h"

namespace mase::test::stream_test {
namespace {

struct Streamed {
  Design design;
  std::string folder;
};

Streamed streamed(const IntegerGraph& graph, int64_t cycles, size_t rows = 60) {
  Streamed result{
      make_design(graph, {.style = "stream", .style_options = Dict{{"cycles", cycles}}}),
      temporary_folder() + "/design"};
  write_design(result.folder, design_files(result.design, random_rows(graph, rows, 4), {}));
  return result;
}

Graph lab_network() {
  Sequential network("lab4", {.sample_shape = {4}, .outputs = 10, .seed = 2}, {4}, 10);
  return network.linear(10).relu().finish();
}

TEST(stream, stages_are_the_network) {
  const IntegerGraph graph = lower(in_variant(lab_network(), "8/4")).graph;
  const std::vector<StreamStage> stages = stream_network(graph).stages;
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].inputs(), 4);
  EXPECT_EQ(stages[0].outputs(), 10);
  EXPECT_EQ(stages[0].in.width, 8);
  EXPECT_EQ(stages[0].graphs.size(), 1u);  // one ReLU for all
  // Every row, by the stages' own numbers.
  const DesignRows rows = random_rows(graph, 50, 1);
  for (size_t row = 0; row < 50; ++row)
    for (size_t o = 0; o < 10; ++o) {
      int64_t sum = stages[0].constants[o];
      for (size_t i = 0; i < 4; ++i) sum += stages[0].weights[i][o] * rows.inputs[4 * row + i];
      EXPECT_EQ(std::max<int64_t>(sum, 0), rows.outputs[10 * row + o]);
    }
}

TEST(stream, the_plan_is_the_cheapest_that_keeps_up) {
  const Fixture fixture = read_fixture(golden_path("hardware"), "w4_toy");
  const StreamNetwork network = stream_network(fixture.plain);
  const std::vector<StreamStage>& stages = network.stages;
  double luts = 1e30;
  for (const int64_t cycles : {1, 2, 8, 32, 128}) {
    const StreamPlan plan = plan_stream(network, cycles);
    EXPECT_LE(plan.interval, cycles);
    EXPECT_LE(plan.area, luts);  // more time is never dearer
    luts = plan.area;
    for (size_t k = 0; k < stages.size(); ++k) {
      EXPECT_EQ(stages[k].inputs() % plan.stages[k].before, 0);
      EXPECT_EQ(stages[k].outputs() % plan.stages[k].after, 0);
    }
  }
}

TEST(stream, same_results_under_random_stalls) {
  if (!tool_exists("iverilog")) GTEST_SKIP() << "iverilog is not installed";
  const IntegerGraph lab = lower(in_variant(lab_network(), "8/4")).graph;
  Graph toy = make_model("jsc-toy");
  std::vector<IntegerGraph> graphs = {lab, lower(in_variant(toy, "per_element")).graph};
  if (!sanitized) {  // which do not look into simulators
    graphs.push_back(read_fixture(golden_path("hardware"), "w4_toy").plain);
    graphs.push_back(lower(in_variant(toy, "6/3")).graph);
    graphs.push_back(lower(in_variant(toy, "power_of_two")).graph);
  }
  for (const IntegerGraph& graph : graphs)
    for (const int64_t cycles :
         sanitized ? std::vector<int64_t>{7} : std::vector<int64_t>{1, 7, 200}) {
      const Streamed design = streamed(graph, cycles);
      const Simulation result = simulate_folder(design.folder, "iverilog", "");
      EXPECT_EQ(result.mismatches, 0) << graph.name << " " << cycles << "\n" << result.output;
      EXPECT_EQ(result.rows, 60);
    }
}

TEST(stream, a_row_as_often_as_it_says) {
  if (!tool_exists("iverilog")) GTEST_SKIP() << "iverilog is not installed";
  const IntegerGraph graph = read_fixture(golden_path("hardware"), "w4_toy").plain;
  for (const int64_t cycles :
       sanitized ? std::vector<int64_t>{8} : std::vector<int64_t>{1, 8, 64}) {
    const auto cycles_of = [&](size_t rows) {
      const Streamed design = streamed(graph, cycles, rows);
      const std::string work = design.folder + "/build/iverilog";
      EXPECT_EQ(simulate_folder(design.folder, "iverilog", "").mismatches, 0);
      const ToolResult result = run_tool({"vvp", "bench", "+nostall"}, work);
      const size_t at = result.output.find(" clock cycles");
      EXPECT_NE(at, std::string::npos) << result.output;
      const size_t line = result.output.rfind('\n', at);
      const std::string number = result.output.substr(line == std::string::npos ? 0 : line + 1, at);
      return std::make_pair(std::stol(number), design.design.emitted);
    };
    const auto [few, design] = cycles_of(10);
    const auto [many, same] = cycles_of(110);
    EXPECT_EQ((many - few) / 100, design.interval) << cycles;
    // The first row's result leaves after the latency; nine more rows follow.
    EXPECT_NEAR(static_cast<double>(few), static_cast<double>(design.latency + 9 * design.interval),
                2)
        << cycles;
  }
}

TEST(stream, lint_and_synthesis_are_clean_and_faults_are_seen) {
  const IntegerGraph graph = lower(in_variant(lab_network(), "8/4")).graph;
  const Streamed design = streamed(graph, 20);
  const std::string text = read(design.folder + "/rtl/top.sv");
  for (const char* name :
       {"data_in_0_valid", "data_out_0_ready", "SEQ_BLOCKS_0_DATA_IN_0_PRECISION_0",
        "SEQ_BLOCKS_0_DATA_OUT_0_PARALLELISM_DIM_0"})
    EXPECT_THAT(text, testing::HasSubstr(name));
  if (tool_exists("verilator")) {
    const ToolResult lint = run_tool(
        {"sh", "-c", "verilator --lint-only -Wall --top-module top rtl/*.sv"}, design.folder);
    EXPECT_EQ(lint.exit_code, 0) << lint.output;
  }
  if (tool_exists("yosys")) {
    EXPECT_GT(synthesize_folder(design.folder).registers, 0);
  }
  if (!tool_exists("iverilog")) GTEST_SKIP() << "iverilog is not installed";
  // Results that do not wait, and a weight with a wrong bit.
  const std::string path = design.folder + "/rtl/seq_blocks_0.sv", right = read(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string wrong = right;
    const size_t at = wrong.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write(path, wrong.replace(at, from.size(), to));
    try {
      return simulate_folder(design.folder, "iverilog", "").mismatches;
    } catch (const Error&) {
      return int64_t{1};  // rows were lost: fewer were compared than sent
    }
  };
  EXPECT_GT(with("done & (~data_out_0_valid | data_out_0_ready)", "done"), 0);
  EXPECT_GT(with("base_0 + p_0_0", "base_0 - p_0_0"), 0);
}

TEST(stream, other_forms_are_refused) {
  const IntegerGraph mx = lower(in_variant(make_model("jsc-toy"), "mxint")).graph;
  try {
    stream_network(mx);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("several sums at once"));
  }
}

}  // namespace
}  // namespace mase::test::stream_test
