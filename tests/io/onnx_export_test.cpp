// SPDX-License-Identifier: Apache-2.0
// Networks of ours written as ONNX and read again from their nodes, as anybody's: the same layers,
// numbers and number formats. (tests/io/onnx_round_trip_test.cpp has them back as they were.)
// (tests/io/onnx_runtime_test.py has other programs run them.)
#include <algorithm>
#include <cmath>
#include <map>

#include "mase/engine/program.h"
#include "mase/io/onnx/file/read_model.h"
#include "mase/io/onnx/file/write_model.h"
#include "mase/io/onnx/read/import.h"
#include "mase/io/onnx/write/export.h"
#include "mase/ir/op.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase::onnx_export_test {
namespace {

Graph read_again(const onnx::Model& model) {
  const std::string bytes = onnx::model_bytes(model);
  MemoryBudget budget({}, bytes.size());
  const auto owner = std::make_shared<std::string>(bytes);
  const onnx::Model parsed =
      onnx::read_model(std::as_bytes(std::span(*owner)), owner, "written.onnx", budget);
  onnx::ExternalFiles nowhere("");
  return onnx::import_nodes(parsed, nowhere, "written.onnx", budget).graph;
}

Tensor numbers(const Shape& shape, int modulus) {
  Tensor tensor(shape);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    tensor.mutable_data<float>()[i] =
        modulus > 0 ? static_cast<float>(i * 7 % modulus)
                    : static_cast<float>(std::sin(0.37 * static_cast<double>(i) + 1) * 1.5);
  return tensor;
}

std::vector<Tensor> inputs_of(const Graph& graph, int modulus) {
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.placeholders()) {
    Shape shape = graph.node(id).sample_shape;
    shape.insert(shape.begin(), 3);
    inputs.push_back(numbers(shape, modulus).to(graph.node(id).element));
  }
  return inputs;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double largest = 0, scale = 1;
  for (int64_t i = 0; i < std::min(a.numel(), b.numel()); ++i) {
    largest = std::max(largest, std::fabs(a.item(i) - b.item(i)));
    scale = std::max(scale, std::fabs(a.item(i)));
  }
  return largest / scale;
}

TEST(OnnxExport, ExtremeValuesAndTheirPlaces) {
  for (const char* op : {"max", "min"})
    for (const int64_t operator_set : {13, 20}) {
      SCOPED_TRACE(fmt::format("{} {}", op, operator_set));
      Graph graph;
      const NodeId x = graph.add_placeholder("x", {4, 5});
      const NodeId both = graph.call_function(
          op, {Argument::node(x)},
          {{"dim", Argument::literal(1)}, {"keepdim", Argument::literal(false)}});
      graph.add_output({graph.result_of(both, 0), graph.result_of(both, 1)});
      const Graph again = read_again(onnx::export_graph(graph, {.operator_set = operator_set}));
      const std::vector<Tensor> inputs = inputs_of(graph, 0);
      const std::vector<Tensor> before = run(graph, inputs), after = run(again, inputs);
      ASSERT_EQ(after.size(), 2u);
      EXPECT_EQ(largest_difference(before[0], after[0]), 0);
      EXPECT_EQ(largest_difference(before[1], after[1]), 0);
    }
}

TEST(OnnxExport, FloatNetworksComeBackWithTheirLayers) {
  for (const char* name : {"jsc-tiny", "jsc-toy", "lenet", "cnv"}) {
    const Graph graph = make_model(name, {.seed = 5});
    const Graph again = read_again(onnx::export_graph(graph));
    std::vector<std::string> ours, theirs;
    for (const auto& [path, module] : graph.modules())
      if (module.op != "dropout" && module.op != "identity") ours.push_back(path + " " + module.op);
    for (const auto& [path, module] : again.modules()) theirs.push_back(path + " " + module.op);
    EXPECT_EQ(ours, theirs) << name;
    const std::vector<Tensor> inputs = inputs_of(graph, 0);
    EXPECT_LE(largest_difference(run(graph, inputs).at(0), run(again, inputs).at(0)), 1e-6) << name;
  }
}

// Layers of one image [3, 7, 6] whose arguments ONNX says otherwise: the same numbers.
TEST(OnnxExport, UnusualArgumentsComeBack) {
  const Dict convolution{{"in_channels", 3}, {"out_channels", 4}, {"kernel_size", List{2, 3}}};
  std::vector<std::pair<std::string, Dict>> layers;
  for (const char* mode : {"reflect", "replicate", "circular"})
    for (const Value& padding : {Value(List{1, 2}), Value("same")}) {
      Dict attributes = convolution;
      attributes.set("padding", padding);
      attributes.set("padding_mode", mode);
      layers.emplace_back("conv2d", attributes);
    }
  for (const char* mode : {"nearest", "bilinear"})
    for (const bool recompute : {false, true})
      layers.emplace_back(
          "upsample",
          Dict{{"scale_factor", 1.7}, {"mode", mode}, {"recompute_scale_factor", recompute}});
  layers.emplace_back("instance_norm2d",
                      Dict{{"num_features", 3}, {"affine", true}, {"track_running_stats", true}});
  for (const auto& [op, attributes] : layers) {
    Graph graph;
    graph.name = "one";
    const NodeId x = graph.add_placeholder("x", {3, 7, 6});
    graph.add_output(
        {graph.add_module("layer", make_module(op, Value(attributes), 3, "layer"), {x})});
    const std::vector<Tensor> inputs = inputs_of(graph, 0);
    const Graph again = read_again(onnx::export_graph(graph));
    EXPECT_LE(largest_difference(run(graph, inputs).at(0), run(again, inputs).at(0)), 1e-6)
        << op << " " << python_repr(Value(attributes));
  }
}

std::map<std::string, int> op_counts(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    if (module) ++counts[module->op];
    if (node.kind == NodeKind::call_function) ++counts[node.target];
  }
  return counts;
}

// Operator set 13 has neither LayerNormalization nor Gelu: they are written in their parts, and the
// parts are layers again when they are read.
TEST(OnnxExport, TransformersComeBack) {
  for (const char* name : {"bert-tiny", "llama-tiny"})
    for (const int64_t operator_set : {13, 17, 20}) {
      const Graph graph = make_model(name, {.seed = 5});
      const Graph again = read_again(onnx::export_graph(graph, {.operator_set = operator_set}));
      const std::vector<Tensor> inputs = inputs_of(graph, 50);
      EXPECT_LE(largest_difference(run(graph, inputs).at(0), run(again, inputs).at(0)), 1e-5)
          << name << " " << operator_set;
      std::map<std::string, int> ours = op_counts(graph), theirs = op_counts(again);
      EXPECT_EQ(graph.parameter_count(), again.parameter_count()) << name;  // positions included
      for (const char* op : {"linear", "layer_norm", "rms_norm", "gelu", "silu", "embedding",
                             "rotary_embedding", "scaled_dot_product_attention"})
        EXPECT_EQ(ours[op], theirs[op]) << name << " " << operator_set << ": " << op;
    }
}

// Attention with its projections has no node in ONNX: it is written in its parts.
TEST(OnnxExport, MultiheadAttentionIsWrittenInItsParts) {
  for (const bool batch_first : {false, true})
    for (const bool causal : {false, true}) {
      const OpRecord& op = find_op("multihead_attention");
      Module module{.op = op.name,
                    .attributes = validate(Value(Dict{{"embed_dim", 12},
                                                      {"num_heads", 3},
                                                      {"bias", causal},
                                                      {"batch_first", batch_first},
                                                      {"is_causal", causal}}),
                                           op.attributes, "")};
      for (const ParamSpec& spec : op.params(module.attributes))
        module.parameters.emplace_back(spec.name, numbers(spec.shape, 0));
      Graph graph;
      graph.name = "attention";
      NodeId x = graph.add_placeholder("x", {5, 12});
      const auto turned = [&](NodeId node) {
        return batch_first
                   ? node
                   : graph.call_function("transpose", {Argument::node(node), Argument::literal(0),
                                                       Argument::literal(1)});
      };
      x = turned(x);
      const NodeId both = graph.add_module("block.attention", std::move(module), {x, x, x});
      const auto result = [&](int64_t index) {
        return graph.call_function("getitem", {Argument::node(both), Argument::literal(index)});
      };
      const NodeId y = turned(result(0)), weights = result(1);
      graph.add_output({y, weights});
      const std::vector<Tensor> inputs = inputs_of(graph, 0);
      const std::vector<Tensor> ours = run(graph, inputs);
      for (const int64_t operator_set : {13, 20}) {
        const Graph again = read_again(onnx::export_graph(graph, {.operator_set = operator_set}));
        const std::vector<Tensor> theirs = run(again, inputs);
        for (size_t i = 0; i < 2; ++i)
          EXPECT_LE(largest_difference(ours.at(i), theirs.at(i)), 1e-5) << batch_first << causal;
        EXPECT_EQ(op_counts(again)["scaled_dot_product_attention"], 1);
        EXPECT_TRUE(again.modules().count("block.attention.q_proj"));
      }
      // Rounded, every part has its quantiser.
      Dict config{{"name", "integer"}};
      for (const char* operand : {"data_in", "weight", "bias", "projected", "attended"}) {
        config.set(std::string(operand) + "_width", 6);
        config.set(std::string(operand) + "_frac_width", 4);
      }
      Problems problems;
      graph.modules().at("block.attention").quantization =
          parse_quantization(config, operand_rules(op), "attention", problems);
      problems.throw_if_any();
      const std::vector<Tensor> rounded = run(graph, inputs);
      EXPECT_GT(largest_difference(ours.at(0), rounded.at(0)), 1e-3);
      const Graph again = read_again(onnx::export_graph(graph, {.flavour = onnx::Flavour::qonnx}));
      const std::vector<Tensor> theirs = run(again, inputs);
      for (size_t i = 0; i < 2; ++i)
        EXPECT_LE(largest_difference(rounded.at(i), theirs.at(i)), 1e-5) << batch_first << causal;
    }
}

// A query from which a mask hides all keys gives zeros, here and wherever the file is run.
TEST(OnnxExport, AttentionThatSeesNothingGivesZeros) {
  for (const bool causal : {false, true}) {
    Graph graph;
    graph.name = "attention";
    const Argument q = Argument::node(graph.add_placeholder("q", {2, 3, 4})),
                   mask = Argument::node(graph.add_placeholder("mask", {1, 3, 3}));
    graph.add_output({graph.call_function("scaled_dot_product_attention", {q, q, q, mask},
                                          {{"is_causal", Argument::literal(causal)}})});
    std::vector<Tensor> inputs = inputs_of(graph, 0);
    for (int64_t i = 3; i < 6; ++i) inputs[1].mutable_data<float>()[i] = -INFINITY;  // query 1
    inputs[1].mutable_data<float>()[1 * 9 + 6] = -INFINITY;                          // a single key
    inputs[1].mutable_data<float>()[2 * 9] = -INFINITY;  // all that is not hidden from query 0
    const Tensor ours = run(graph, inputs).at(0);
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(ours.item(head * 12 + 4 + i), 0);
        EXPECT_EQ(ours.item(2 * 24 + head * 12 + i) == 0, causal);
      }
    for (int64_t i = 0; i < ours.numel(); ++i) EXPECT_TRUE(std::isfinite(ours.item(i)));
    const Graph again = read_again(onnx::export_graph(graph));
    EXPECT_LE(largest_difference(ours, run(again, inputs).at(0)), 1e-6);
    if (!causal) {
      EXPECT_EQ(op_counts(again)["scaled_dot_product_attention"], 1);
    }
  }
}

Graph quantised(const std::string& format, int width, int frac) {
  Graph graph = make_model("jsc-toy", {.seed = 5});
  for (auto& [path, module] : graph.modules()) {
    if (module.op != "linear" && module.op != "relu") continue;
    const OpRecord& op = find_op(module.op);
    Dict config{{"name", format}};
    for (const char* operand : {"data_in", "weight", "bias"}) {
      if (!std::count(op.operands.begin(), op.operands.end(), operand)) continue;
      config.set(std::string(operand) + "_width", width);
      if (format == "integer") config.set(std::string(operand) + "_frac_width", frac);
      if (format == "affine") config.set(std::string(operand) + "_scale", 0.037 + 0.01 * frac);
    }
    Problems problems;
    module.quantization =
        parse_quantization(config, {op.operands, {}, op.unsigned_operands}, path, problems);
    problems.throw_if_any();
  }
  return graph;
}

TEST(OnnxExport, QuantisedNetworksComeBackToTheBit) {
  const std::vector<Tensor> inputs = inputs_of(quantised("integer", 8, 4), 0);
  for (const auto& [format, width, frac] :
       {std::tuple{"integer", 8, 4}, {"integer", 6, 3}, {"affine", 5, 2}, {"affine", 8, 1}}) {
    const Graph graph = quantised(format, width, frac);
    for (const onnx::Flavour flavour :
         {onnx::Flavour::qonnx, onnx::Flavour::qcdq, onnx::Flavour::qdq}) {
      SCOPED_TRACE(fmt::format("{} {} {}", format, width, onnx::flavour_name(flavour)));
      if (flavour == onnx::Flavour::qdq && width != 8) {
        EXPECT_THROW(onnx::export_graph(graph, {.flavour = flavour}), Error);
        continue;
      }
      const Graph again = read_again(onnx::export_graph(graph, {.flavour = flavour}));
      EXPECT_LE(largest_difference(run(graph, inputs).at(0), run(again, inputs).at(0)), 1e-6);
      for (const auto& [path, module] : graph.modules()) {  // the same operands of the same layers
        ASSERT_TRUE(again.modules().count(path)) << path;
        for (const auto& [operand, quantizer] : module.quantization.operands)
          EXPECT_TRUE(again.modules().at(path).quantization.find(operand))
              << path << " " << operand;
        EXPECT_EQ(module.quantization.operands.size(),
                  again.modules().at(path).quantization.operands.size())
            << path;
      }
      size_t rounded = 0;
      for (const auto& [path, module] : again.modules())
        for (const auto& [operand, quantizer] : module.quantization.operands) {
          EXPECT_EQ(quantizer->format, format) << path;
          EXPECT_EQ(quantizer->config["width"].as_int(), width) << path;
          ++rounded;
        }
      EXPECT_GE(rounded, 9u);
    }
  }
}

TEST(OnnxExport, WhatAFlavourCannotSayIsAnErrorThatNamesTheLayer) {
  const auto error = [](const Graph& graph, onnx::Flavour flavour) -> std::string {
    try {
      onnx::export_graph(graph, {.flavour = flavour});
    } catch (const Error& caught) {
      return caught.what();
    }
    return "";
  };
  EXPECT_EQ(error(quantised("integer", 6, 3), onnx::Flavour::qdq),
            "seq_blocks.1: data_in (integer): 6 bits need a Clip (--flavour qcdq)");
  EXPECT_NE(error(quantised("integer", 6, 3), onnx::Flavour::plain).find("choose a flavour"),
            std::string::npos);
  EXPECT_NE(error(quantised("integer", 12, 3), onnx::Flavour::qcdq)
                .find("QuantizeLinear of operator set 20 has no 12 bits"),
            std::string::npos);
  Graph learning = make_model("jsc-tiny");
  for (auto& [path, module] : learning.modules()) {
    if (module.op != "linear") continue;
    const Dict config{{"name", "scale_integer"},
                      {"data_in_width", 4},
                      {"weight_width", 4},
                      {"weight_scale", "learned"}};
    Problems problems;
    module.quantization =
        parse_quantization(config, operand_rules(find_op("linear")), path, problems);
    problems.throw_if_any();
    module.quantization.operands.erase("data_in");
  }
  EXPECT_EQ(error(learning, onnx::Flavour::qonnx),
            "seq_blocks.2: weight (scale_integer): its scale is learned, and no training has found "
            "it yet; "
            "train the network, or quantise to integer or affine");
}

TEST(OnnxExport, CommandsTakeOnnxFiles) {
  const std::string folder = test::temporary_folder();
  const std::string model = test::golden_path("onnx/q03_jsc_w6a6_po2/model.onnx"),
                    rows = test::golden_path("onnx/q03_jsc_w6a6_po2/input_0.npy");
  const auto fine = [&](const std::vector<std::string>& arguments) {
    const auto result = test::ch(arguments, folder);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err;
    return result.out;
  };
  fine({"predict", model, "--input", rows, "--output", "out.npy"});
  fine({"predict", "--load", model, "--input", rows, "--output", "again.npy"});
  EXPECT_EQ(test::read(folder + "/out.npy"), test::read(folder + "/again.npy"));
  EXPECT_NE(fine({"import", model, "--output", "net.mz"}).find("written to net.mz"),
            std::string::npos);
  fine({"predict", "--load", "net.mz", "--input", rows, "--output", "imported.npy"});
  EXPECT_EQ(test::read(folder + "/out.npy"), test::read(folder + "/imported.npy"));
  fine({"export", "--load", "net.mz", "--to", "back.onnx"});
  fine({"predict", "back.onnx", "--input", rows, "--output", "back.npy"});
  EXPECT_EQ(test::read(folder + "/out.npy"), test::read(folder + "/back.npy"));
  EXPECT_NE(fine({"inspect", model}).find("operator_sets"), std::string::npos);
  EXPECT_NE(fine({"summary", model}).find("Linear"), std::string::npos);
  const auto refused = test::ch({"predict", model, "--load", "net.mz", "--input", rows}, folder);
  EXPECT_EQ(refused.exit_code, 2);
}

}  // namespace
}  // namespace mase::onnx_export_test
