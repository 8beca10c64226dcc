// SPDX-License-Identifier: Apache-2.0
// Streams never stop and no queue overflows: proved of every network with planes and skip
// connections from its folder, and refused where a queue, a stage, what connects them or a depth is
// another one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/plane_networks.h"
#include "mase/base/file.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/hardware/prove/certificate.h"
#include "mase/hardware/stream/plan.h"
#include "mase/hardware/tools/tool.h"
#include "mase/hardware/verify/token_flow.h"
#include "support/support.h"

namespace mase::test::handshake_test {
namespace {

using testing::HasSubstr;

const Graph& network(const std::string& wanted) {
  for (const auto& [name, graph] : plane_networks())
    if (name == wanted) return graph;
  throw std::runtime_error("no network " + wanted);
}

std::string streamed(const Graph& graph, int64_t times) {
  const IntegerGraph lowered = lower(graph).graph;
  const int64_t cycles = times * default_cycles(stream_network(lowered));
  const Design design = make_design(
      lowered,
      {.style = "stream", .style_options = Dict{{"cycles", cycles}, {"multipliers", "luts"}}});
  std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, random_rows(design.graph, 3, 1), {}));
  return folder;
}

CheckedFlow checked(const std::string& folder) { return *check_flow(folder_flow(folder), folder); }

TEST(handshake, no_stream_ever_stops) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  for (const auto& [name, graph] : plane_networks())
    for (const int64_t times : {1, 5}) {
      const CheckedFlow flow = checked(streamed(graph, times));
      EXPECT_EQ(flow.fault, "") << name << flow.module;
      EXPECT_THAT(flow.open, testing::IsEmpty()) << name;
      EXPECT_GT(flow.states, 10) << name;
    }
}

TEST(handshake, planted_faults_are_refused) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const std::string folder = streamed(network("residual block"), 1);
  struct Fault {
    std::string file, from, to, wanted;
  };
  const std::vector<Fault> faults = {
      {"fifo", "full <= behind_next == first", "full <= 1'b0", "beats wait"},
      {"fifo", "assign data_in_ready = ~full", "assign data_in_ready = 1'b1", "beats wait"},
      {"fifo", "beats[next] <= data_in", "beats[first] <= data_in", "beats wait"},
      {"fifo", "assign data_out = beats[first]", "assign data_out = beats[next]", "beats wait"},
      {"fifo", "else if (taken & ~put) full <= 1'b0;", "", "beats wait"},
      {"skid_buffer", "assign data_in_ready = ~full", "assign data_in_ready = 1'b1", "beats wait"},
      {"skid_buffer", "full ? kept : data_in", "data_in", "another beat"},
      {"seq_blocks_2", "done & (~data_out_0_valid | data_out_0_ready)", "done",
       "operands of a row"},
      {"seq_blocks_2", "step & last_digit", "1'b1", "operands of a row"},
      {"seq_blocks_2", "data_in_0_valid | ~in_plane", "data_in_0_valid", "operands of a row"},
      {"seq_blocks_0", "always_ff @(posedge clk)\n    if (rst)",
       "always_ff @(negedge clk)\n    if (rst)", "rising edge"}};
  for (const Fault& fault : faults) {
    const std::string path = fmt::format("{}/rtl/{}.sv", folder, fault.file), right = read(path);
    std::string wrong = right;
    const size_t at = wrong.find(fault.from);
    ASSERT_NE(at, std::string::npos) << fault.from << right;
    write(path, wrong.replace(at, fault.from.size(), fault.to));
    const CheckedFlow flow = checked(folder);
    EXPECT_FALSE(flow.proved()) << fault.from;
    EXPECT_THAT(flow.fault + testing::PrintToString(flow.open), HasSubstr(fault.wanted))
        << fault.from;
    write(path, right);
  }
  EXPECT_TRUE(checked(folder).proved());
}

TEST(handshake, wires_of_the_top_are_those_of_the_claim) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const std::string folder = streamed(network("residual block"), 1), path = folder + "/rtl/top.sv",
                    right = read(path);
  // Every '&' of forks and joins, and a fork's slice.
  size_t tried = 0;
  for (size_t at = right.find(" & "); at != std::string::npos; at = right.find(" & ", at + 1)) {
    std::string wrong = right;
    write(path, wrong.replace(at, 3, " | "));
    EXPECT_THAT(checked(folder).fault, HasSubstr("waits for something else")) << at;
    ++tried;
  }
  EXPECT_GE(tried, 4u);
  std::string crossed = right;
  const size_t at = crossed.find(".data_in_0_valid(");
  ASSERT_NE(at, std::string::npos);
  write(path, crossed.replace(at, 17, ".data_in_0_valid(~"));
  EXPECT_NE(checked(folder).fault, "");
}

TEST(handshake, a_skip_that_is_too_short_stops_and_is_refused) {
  const Graph& graph = network("residual block");
  const StreamNetwork stages = stream_network(lower(graph).graph);
  StreamPlan plan = plan_stream(stages, 0);
  // The deepest queue is the skip's.
  int64_t* deepest = nullptr;
  for (StagePlan& stage : plan.stages)
    for (int64_t& buffer : stage.buffers)
      if (!deepest || buffer > *deepest) deepest = &buffer;
  ASSERT_GT(*deepest, 8);
  *deepest = 2;
  EXPECT_TRUE(run_timing(stages, plan.stages, 0, false).stuck);
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const Value right = folder_flow(streamed(graph, 1));
  EXPECT_EQ(flow_fault(flow_claim(right, "flow")), "");
  Value wrong = right;
  Value* shortest = nullptr;
  for (Value& stage : wrong["stages"].list())
    for (Value& source : stage["sources"].list())
      if (!shortest || source["depth"].as_int() > (*shortest)["depth"].as_int()) shortest = &source;
  (*shortest)["depth"] = 2;
  EXPECT_THAT(flow_fault(flow_claim(wrong, "flow")), HasSubstr("stops"));
}

}  // namespace
}  // namespace mase::test::handshake_test
