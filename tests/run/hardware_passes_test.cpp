// SPDX-License-Identifier: Apache-2.0
// The hardware lab as it is written: a Linear(4, 10) and a ReLU, metadata, report, top.sv,
// simulation, and the same with a leaky ReLU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "hardware/variants.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/tools/tool.h"
#include "mase/models/sequential.h"
#include "support/support.h"

namespace mase::test::hardware_passes_test {
namespace {

Graph lab_network(const std::string& activation, const Dict& attributes) {
  Sequential network("lab4", {.sample_shape = {4}, .outputs = 10, .seed = 2}, {4}, 10);
  network.linear(10).add(activation, attributes);
  return in_variant(network.finish(), "8/4");
}

TEST(lab4, metadata_report_top_and_simulation) {
  for (const auto& [activation, attributes] : std::vector<std::pair<std::string, Dict>>{
           {"relu", Dict{}}, {"leaky_relu", Dict{{"negative_slope", 0.125}}}}) {
    Graph graph = lab_network(activation, attributes);
    PassContext context;
    context.original = &graph;
    context.save_dir = temporary_folder();
    std::string printed;
    context.print = [&](const std::string& text) { printed += text; };
    run_pass(graph, "add_hardware_metadata", Dict{{"cycles", 10}}, context);
    const Value& meta = graph.find("seq_blocks_0")->meta.at("hardware");
    EXPECT_EQ(meta["toolchain"].as_string(), "INTERNAL_RTL");
    EXPECT_EQ(meta["module"].as_string(), "seq_blocks_0");
    EXPECT_EQ(meta["verilog_param"]["DATA_IN_0_PRECISION_0"].as_int(), 8);
    EXPECT_EQ(meta["verilog_param"]["DATA_IN_0_PRECISION_1"].as_int(), 4);
    EXPECT_EQ(meta["verilog_param"]["DATA_OUT_0_TENSOR_SIZE_DIM_0"].as_int(), 10);
    EXPECT_LE(meta["cycles"].as_int(), 10);
    EXPECT_TRUE(graph.find("x")->meta.at("hardware")["is_implicit"].as_bool());
    run_pass(graph, "report_node_hardware_type", Dict{}, context);
    EXPECT_THAT(printed, testing::HasSubstr("INTERNAL_RTL"));
    const PassResult result =
        run_pass(graph, "emit_verilog_top", Dict{{"project_dir", "lab4"}, {"cycles", 10}}, context);
    ASSERT_TRUE(result.data["emitted"].as_bool()) << to_json(result.data);
    const std::string folder = result.data["folder"].as_string();
    EXPECT_THAT(read(folder + "/rtl/top.sv"), testing::HasSubstr("data_in_0_valid"));
    if (!tool_exists("iverilog")) continue;
    const std::string wave = folder + "/wave.vcd";
    EXPECT_EQ(simulate_folder(folder, "iverilog", wave).mismatches, 0);
    EXPECT_TRUE(std::filesystem::exists(wave));
  }
}

TEST(lab4, a_network_without_integers_is_told_why) {
  Graph graph = make_model("jsc-tiny");
  PassContext context;
  context.original = &graph;
  context.save_dir = temporary_folder();
  const PassResult metadata = run_pass(graph, "add_hardware_metadata", Dict{}, context);
  EXPECT_THAT(metadata.data["reason"].as_string(), testing::HasSubstr("never rounded"));
  const PassResult emitted = run_pass(graph, "emit_verilog_top", Dict{}, context);
  EXPECT_FALSE(emitted.data["emitted"].as_bool());
  EXPECT_FALSE(std::filesystem::exists(context.save_dir + "/top"));
}

}  // namespace
}  // namespace mase::test::hardware_passes_test
