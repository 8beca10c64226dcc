// SPDX-License-Identifier: Apache-2.0
// Every built-in network, in float and in every flavour of quantised files, written as ONNX and
// read again: the same nodes, layers, numbers and number formats, as their texts have them.
#include <algorithm>
#include <cstring>
#include <functional>

#include "mase/base/text.h"
#include "mase/io/onnx/export.h"
#include "mase/io/onnx/import.h"
#include "mase/io/onnx/own_graph.h"
#include "mase/io/onnx/read_model.h"
#include "mase/io/onnx/write_model.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase {
namespace {

onnx::Model parsed(const std::shared_ptr<const std::string>& bytes, MemoryBudget& budget) {
  return onnx::read_model(std::as_bytes(std::span(*bytes)), bytes, "written.onnx", budget);
}

onnx::Model written(const Graph& graph, const onnx::ExportOptions& options) {
  MemoryBudget budget({}, 0);
  return parsed(
      std::make_shared<std::string>(onnx::model_bytes(onnx::export_graph(graph, options))), budget);
}

onnx::Imported imported(const onnx::Model& model) {
  MemoryBudget budget({}, 0);
  onnx::ExternalFiles nowhere("");
  return onnx::import_model(model, nowhere, "written.onnx", budget);
}

// There and back, with the memory that a file of this size has.
onnx::Imported read_again(const Graph& graph, const onnx::ExportOptions& options) {
  const auto bytes =
      std::make_shared<std::string>(onnx::model_bytes(onnx::export_graph(graph, options)));
  MemoryBudget budget({}, bytes->size());
  onnx::ExternalFiles nowhere("");
  return onnx::import_model(parsed(bytes, budget), nowhere, "written.onnx", budget);
}

// Layers with these keys for each operand that they have.
Graph quantised(Graph graph, const std::string& format, const Dict& keys,
                const std::vector<std::string>& operands = {"data_in", "weight", "bias"}) {
  for (auto& [path, module] : graph.modules()) {
    if (module.op != "linear" && module.op != "conv2d") continue;
    Dict config{{"name", format}};
    for (const std::string& operand : operands)
      for (const auto& [key, value] : keys) config.set(operand + "_" + key, value);
    const OpRecord& op = find_op(module.op);
    Problems problems;
    module.quantization =
        parse_quantization(config, op.operands, {}, op.unsigned_operands, path, problems);
    problems.throw_if_any();
  }
  return graph;
}

Graph quantised(const Graph& graph) {
  return quantised(graph, "integer", {{"width", 8}, {"frac_width", 5}});
}

// A line for each node, layer and tensor.
std::vector<std::string> lines_of(const Graph& graph) {
  std::vector<std::string> lines = split(graph.text(), '\n');
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    lines.push_back(fmt::format("{} {} {} {}", node.name, layer_text(graph, node),
                                python_repr(graph.quantization_of(node).config),
                                format_text(graph.quantization_of(node))));
  }
  for (const auto& [path, module] : graph.modules())
    lines.push_back(fmt::format("{} {} {}", path, module.op, python_repr(module.attributes)));
  for (const auto& [name, tensor] : state_dict(graph))
    lines.push_back(
        fmt::format("{} {} {}", name, dtype_name(tensor.dtype()), shape_text(tensor.shape())));
  return lines;
}

void expect_same(const Graph& graph, const Graph& again) {
  const std::vector<std::string> ours = lines_of(graph), theirs = lines_of(again);
  if (ours != theirs) {
    std::string lost, made;
    for (const std::string& line : ours)
      if (!std::count(theirs.begin(), theirs.end(), line)) lost += "- " + line + "\n";
    for (const std::string& line : theirs)
      if (!std::count(ours.begin(), ours.end(), line)) made += "+ " + line + "\n";
    constexpr size_t most = 3000;
    ADD_FAILURE() << lost.substr(0, most) << made.substr(0, most);
    return;
  }
  const TensorTable before = state_dict(graph), after = state_dict(again);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(std::memcmp(before[i].second.raw(), after[i].second.raw(), before[i].second.bytes()),
              0)
        << before[i].first;
}

TEST(OnnxRoundTrip, EveryNetworkComesBackAsItWas) {
  for (const std::string& name : Registry<ModelRecord>::instance().names()) {
    const Graph plain = make_model(name, {.seed = 3});
    // Under sanitizers the small ones: the large ones have no layer that these do not have.
    constexpr int64_t large = 5'000'000;
    if (test::sanitized && plain.parameter_count() > large) continue;
    for (const onnx::Flavour flavour :
         {onnx::Flavour::plain, onnx::Flavour::qonnx, onnx::Flavour::qcdq, onnx::Flavour::qdq}) {
      SCOPED_TRACE(name + " " + onnx::flavour_name(flavour));
      const Graph graph = flavour == onnx::Flavour::plain ? plain : quantised(plain);
      const onnx::Imported again = read_again(graph, {.flavour = flavour});
      expect_same(graph, again.graph);
      EXPECT_TRUE(again.notes.empty());
    }
  }
}

// Also where a node of ONNX means several formats of ours: the one that was there comes back.
TEST(OnnxRoundTrip, EveryFormatThatIsWrittenComesBack) {
  const Graph plain = make_model("jsc-toy", {.seed = 3});
  const std::vector<std::string> all = {"data_in", "weight", "bias", "data_out"};
  for (const Graph& graph :
       {quantised(plain, "integer", {{"width", 6}, {"frac_width", 3}}, all),
        quantised(plain, "affine", {{"width", 8}, {"scale", 0.037}}, all),
        quantised(plain, "affine", {{"width", 5}, {"scale", 0.25}, {"rounding", "floor"}}),
        quantised(plain, "bipolar", {{"scale", 0.5}}, {"weight"}),
        quantised(plain, "binary", {{"width", 1}, {"bipolar", true}}, {"weight"}),
        quantised(plain, "scaled_float", {{"exponent_width", 4}, {"mantissa_width", 3}}),
        quantised(plain, "minifloat_ieee", {{"width", 8}, {"exponent_width", 4}})}) {
    SCOPED_TRACE(python_repr(graph.modules().at("seq_blocks.2").quantization.config));
    EXPECT_TRUE(graph.modules().at("seq_blocks.2").quantization.active());
    expect_same(graph, read_again(graph, {.flavour = onnx::Flavour::qonnx}).graph);
  }
}

TEST(OnnxRoundTrip, OlderOperatorSetsTellItToo) {
  for (const int64_t operator_set : {13, 17, 21}) {
    const Graph graph = make_model("toy_convnet", {.seed = 3});
    expect_same(graph, read_again(graph, {.operator_set = operator_set}).graph);
  }
}

// What the file says about itself is believed only where its nodes and numbers say the same.
TEST(OnnxRoundTrip, WhatTheNodesSayCounts) {
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
TEST(OnnxRoundTrip, ClaimsOfSizesAreNotAllocated) {
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

}  // namespace
}  // namespace mase
