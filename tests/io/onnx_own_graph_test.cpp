// SPDX-License-Identifier: Apache-2.0
// What a file of ours says of the graph it was written from is believed only where its nodes and
// numbers say the same.
#include "io/onnx_written.h"

namespace mase::onnx_own_graph_test {
namespace {

TEST(OnnxOwnGraph, WhatTheNodesSayCounts) {
  const Graph graph = make_model("lenet", {.seed = 3});
  const auto changed = [&](const std::function<void(onnx::Model&)>& change) {
    onnx::Model model = written(graph, {});
    change(model);
    return imported(model);
  };
  const auto description = [](onnx::Model& model) -> std::string& {
    for (auto& [key, value] : model.metadata)
      if (key == onnx::graph_property) return value;
    throw std::runtime_error("it says nothing");
  };
  const auto expect_nodes = [&](const onnx::Imported& result, const std::string& why) {
    ASSERT_EQ(result.notes.size(), 1u);
    EXPECT_NE(result.notes[0].find(why), std::string::npos) << result.notes[0];
  };
  {
    const onnx::Imported result = changed([](onnx::Model& model) {
      for (onnx::NodeData& node : model.graph.nodes)
        if (node.op == "Relu") node.op = "Tanh";
    });
    expect_nodes(result, "(Tanh) differs");
    EXPECT_NE(result.graph.text().find("tanh"), std::string::npos);
    EXPECT_EQ(result.graph.text().find("relu"), std::string::npos);
  }
  {
    const onnx::Imported result = changed([](onnx::Model& model) {
      model.graph.initializers.at(0) = onnx::tensor_data(
          model.graph.initializers.at(0).name, Tensor(model.graph.initializers.at(0).dims));
    });
    expect_same(graph, changed([](onnx::Model&) {}).graph);
    // A weight is what stands in the file, whoever changed it there.
    EXPECT_TRUE(result.notes.empty());
    EXPECT_EQ(state_dict(result.graph).at(0).second.item(0), 0);
  }
  struct Change {
    std::string from, to, why = "";
  };
  for (const Change& change :
       {Change{"\"stride\":1", "\"stride\":2"},
        {"\"padding\":2", "\"padding\":0"},
        {"\"op\":\"conv2d\"", "\"op\":\"linear\""},
        {"\"flavour\":\"float\"", "\"flavour\":\"flat\"", "unknown flavour"},
        {"\"version\":1", "\"version\":7", "another version"},
        {"\"from\":\"conv1.weight\"", "\"from\":\"conv2.weight\"", "differs"},
        {"{", "["}}) {
    SCOPED_TRACE(change.from + " => " + change.to);
    const onnx::Imported result = changed([&](onnx::Model& model) {
      std::string& text = description(model);
      const size_t at = text.find(change.from);
      ASSERT_NE(at, std::string::npos) << text.substr(0, 2000);
      text.replace(at, change.from.size(), change.to);
    });
    expect_nodes(result, change.why);
    EXPECT_NE(result.graph.text().find("conv1"), std::string::npos);
  }
  const onnx::Imported foreign = changed([](onnx::Model& model) { model.producer = "somebody"; });
  EXPECT_TRUE(foreign.notes.empty());
}

// Tables that nodes need are made when the graph is written again: claims of sizes are charged.
TEST(OnnxOwnGraph, ClaimsOfSizesAreNotAllocated) {
  Graph graph;
  graph.name = "attention";
  const Argument q = Argument::node(graph.add_placeholder("q", {2, 3, 4}));
  graph.add_output({graph.call_function("scaled_dot_product_attention", {q, q, q},
                                        {{"is_causal", Argument::literal(true)}})});
  onnx::Model model = written(graph, {});
  expect_same(graph, imported(model).graph);
  for (auto& [key, value] : model.metadata) value = replace_all(value, "[2,3,4]", "[2,1000000,4]");
  MemoryBudget budget({}, 0);
  onnx::ExternalFiles nowhere("");
  const onnx::Imported result = onnx::import_model(model, nowhere, "written.onnx", budget);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("more memory than the limit allows"), std::string::npos)
      << result.notes[0];
}

// Rows that are missing, twice there, or of another tensor.
TEST(OnnxOwnGraph, PartsMakeTheWhole) {
  const Graph graph = unusual_network();
  const auto told = [&](const std::string& from, const std::string& to) {
    onnx::Model model = written(graph, {});
    for (auto& [key, value] : model.metadata) {
      if (key != onnx::graph_property) continue;
      EXPECT_NE(value.find(from), std::string::npos) << value;
      value = replace_all(value, from, to);
    }
    return imported(model).notes.size();
  };
  EXPECT_EQ(told("\"first\":4", "\"first\":4"), 0u);
  EXPECT_EQ(told("\"first\":4", "\"first\":0"), 1u);
  EXPECT_EQ(told("\"first\":8", "\"first\":9223372036854775807"), 1u);
  EXPECT_EQ(told("\"rows\":4", "\"rows\":5"), 1u);
  EXPECT_EQ(told("\"embed_dim\":4", "\"embed_dim\":4000"), 1u);
  EXPECT_EQ(told("\"in_proj_bias\":{\"shape\":[12]", "\"in_proj_bias\":{\"shape\":[0]"), 1u);
  EXPECT_EQ(told("\"rows\":4", "\"rows\":-4"), 1u);
  EXPECT_EQ(told("\"from\":\"attention.v_proj.bias\"", "\"from\":\"attention.k_proj.bias\""), 1u);
  EXPECT_EQ(told("\"shape\":[6,1]", "\"shape\":[3,2]"), 1u);
}

// Parts that do not say which rows they are would each be all of them.
TEST(OnnxOwnGraph, PartsStayInsideTheWhole) {
  onnx::Model model = written(unusual_network(), {});
  for (auto& [key, value] : model.metadata) {
    const std::string before = value;
    value =
        replace_all(value, "\"in_proj_bias\":{\"shape\":[12]", "\"in_proj_bias\":{\"shape\":[4]");
    value = replace_all(value, "bias\",\"first\":0,\"rows\":4", "bias\",\"first\":0");
    value = replace_all(value, "bias\",\"first\":4,\"rows\":4", "bias\",\"first\":4");
    EXPECT_EQ(value.size(), before.size() - 1 - 2 * std::string(",\"rows\":4").size());
  }
  const onnx::Imported result = imported(model);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("in_proj_bias differs"), std::string::npos) << result.notes[0];
}

}  // namespace
}  // namespace mase::onnx_own_graph_test
