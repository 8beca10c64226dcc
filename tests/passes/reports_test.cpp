// SPDX-License-Identifier: Apache-2.0
// The reports, to the character, against what users of MASE saw.
#include "mase/base/text.h"
#include "mase/models/model.h"
#include "mase/passes/metadata.h"
#include "mase/passes/pass.h"
#include "support/support.h"

namespace mase::reports_test {
namespace {

struct Printed {
  std::string text;
  PassContext context;
  Printed() {
    context.batch_size = 8;
    context.print = [this](const std::string& more) { text += more; };
  }
};

TEST(Reports, GraphReportIsTheLabs) {
  for (const char* name : {"jsc-tiny", "jsc-10x"}) {
    Graph graph = make_model(name);
    Printed printed;
    const PassResult result = run_pass(graph, "report_graph", Value(), printed.context);
    EXPECT_EQ(printed.text,
              test::read(test::golden_path(fmt::format("passes/report_graph_{}.txt", name))));
    EXPECT_FALSE(result.changed);
  }
}

TEST(Reports, GraphReportGoesToAFile) {
  Graph graph = make_model("jsc-tiny");
  Printed printed;
  printed.context.save_dir = test::temporary_folder();
  run_pass(graph, "report_graph_analysis_pass", Dict{{"file_name", "report.txt"}}, printed.context);
  EXPECT_EQ(printed.text, "");
  EXPECT_EQ(test::read(printed.context.save_dir + "/report.txt"),
            test::read(test::golden_path("passes/report_graph_jsc-tiny.txt")));
}

// The lab's own statistics, in our table.
TEST(Reports, MetaParamTableIsTheLabs) {
  Graph graph = make_model("jsc-10x");
  Printed printed;
  ensure_metadata(graph, printed.context);
  const Value software = read_json(test::golden_path("passes/report_4_software.json"));
  for (const auto& [name, value] : software.as_dict()) {
    const Node* node = graph.find(name);
    ASSERT_TRUE(node) << name;
    // Our own empty table has the same keys as the lab's.
    for (const char* side : {"args", "results"})
      if (value[side].is_dict()) {
        for (const auto& [argument, stat] : value[side].as_dict())
          EXPECT_TRUE(node->meta.at("software")[side][argument].is_dict()) << name << argument;
      }
    graph.node(node->id).meta.set("software", value);
  }
  printed.text.clear();
  printed.context.save_dir = test::temporary_folder();
  run_pass(graph, "report_node_meta_param",
           Dict{{"which", List{Value("software")}}, {"save_path", "meta.txt"}}, printed.context);
  const std::string golden =
      test::read(test::golden_path("passes/report_node_meta_param_jsc-10x.txt"));
  EXPECT_EQ(printed.text, golden);
  EXPECT_NE(golden.find(test::read(printed.context.save_dir + "/meta.txt")), std::string::npos);
}

TEST(Reports, CommonMetadataHasMasesLayout) {
  Graph graph = make_model("jsc-tiny");
  Printed printed;
  ensure_metadata(graph, printed.context);
  EXPECT_EQ(python_pprint(graph.find("seq_blocks_2")->meta.at("common")),
            "{'args': {'bias': {'from': None,\n"
            "                   'precision': [32],\n"
            "                   'shape': [5],\n"
            "                   'type': 'float'},\n"
            "          'data_in_0': {'precision': [32],\n"
            "                        'shape': [8, 16],\n"
            "                        'torch_dtype': torch.float32,\n"
            "                        'type': 'float'},\n"
            "          'weight': {'from': None,\n"
            "                     'precision': [32],\n"
            "                     'shape': [5, 16],\n"
            "                     'type': 'float'}},\n"
            " 'mase_op': 'linear',\n"
            " 'mase_type': 'module_related_func',\n"
            " 'results': {'data_out_0': {'precision': [32],\n"
            "                            'shape': [8, 5],\n"
            "                            'torch_dtype': torch.float32,\n"
            "                            'type': 'float'}}}");
  EXPECT_EQ(graph.find("x")->meta.at("common")["args"], Value(Dict()));
  EXPECT_EQ(graph.meta.at("common")["nodes_in"], Value(List{Value("x")}));
  EXPECT_EQ(graph.meta.at("common")["nodes_out"], Value(List{Value("seq_blocks_3")}));
  // Values on request, as PyTorch prints tensors.
  run_pass(graph, "add_common_metadata", Dict{{"add_value", true}}, printed.context);
  EXPECT_TRUE(
      starts_with(graph.find("seq_blocks_2")->meta.at("common")["args"]["weight"]["value"].symbol(),
                  "tensor([["));
}

TEST(Reports, MetadataLeavesRunningStatisticsAlone) {
  Graph graph = make_model("jsc-toy");
  const TensorTable before = state_dict(graph);
  Printed printed;
  run_pass(graph, "init_metadata", Value(), printed.context);
  run_pass(graph, "add_common_metadata", Dict{{"add_value", true}}, printed.context);
  run_pass(graph, "profile_statistics",
           Dict{{"target_activation_nodes", List{Value("relu")}},
                {"activation_statistics", Dict{{"range_min_max", Dict()}}}},
           printed.context);
  const TensorTable after = state_dict(graph);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(before[i].second.same_bits(after[i].second)) << before[i].first;
}

TEST(Reports, TypesAndShapes) {
  Graph graph = make_model("jsc-tiny");
  Printed printed;
  run_pass(graph, "report_node_type", Value(), printed.context);
  EXPECT_NE(
      printed.text.find("seq_blocks_2  call_module  module_related_func  linear        float"),
      std::string::npos)
      << printed.text;
  printed.text.clear();
  run_pass(graph, "report_node_shape", Value(), printed.context);
  EXPECT_NE(printed.text.find("data_in_0 [8, 16], weight [5, 16], bias [5]"), std::string::npos)
      << printed.text;
}

TEST(Reports, DrawsWithAndWithoutGraphviz) {
  Graph graph = make_model("jsc-toy");
  for (const char* layout : {"builtin", "auto"}) {
    Printed printed;
    printed.context.save_dir = test::temporary_folder();
    run_pass(graph, "draw_graph", Dict{{"layout", layout}}, printed.context);
    const std::string svg = test::read(printed.context.save_dir + "/mase_graph.svg");
    EXPECT_NE(svg.find("<svg"), std::string::npos);
    EXPECT_NE(svg.find("seq_blocks_10"), std::string::npos);
    EXPECT_NE(svg.find("Linear(in_features=16, out_features=8, bias=True)"), std::string::npos);
  }
}

}  // namespace
}  // namespace mase::reports_test
