// SPDX-License-Identifier: Apache-2.0
// Every built-in network, in float and in every flavour of quantised files, written as ONNX and
// read again: the same nodes, layers, numbers and number formats, as their texts have them.
#include "io/onnx_written.h"

namespace mase::onnx_round_trip_test {
namespace {

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

// The joint projection stands in three parts, numbers of channels in another shape.
TEST(OnnxRoundTrip, ParametersInPartsAndInOtherShapes) {
  const Graph graph = unusual_network();
  for (const int64_t operator_set : {13, 20}) {
    const onnx::Imported again = read_again(graph, {.operator_set = operator_set});
    expect_same(graph, again.graph);
    EXPECT_TRUE(again.notes.empty());
  }
}

// Formats of such parameters are written too, and one that has no place in the file is an error.
TEST(OnnxRoundTrip, FormatsOfUnusualParameters) {
  Graph graph = unusual_network();
  for (const char* layer : {"norm", "slope"}) {
    Module& module = graph.modules().at(layer);
    const OpRecord& op = find_op(module.op);
    Dict config{{"name", "integer"}};
    for (const std::string& operand : op.operands) {
      config.set(operand + "_width", 4);
      config.set(operand + "_frac_width", 2);
    }
    Problems problems;
    module.quantization =
        parse_quantization(config, {op.operands, {}, op.unsigned_operands}, layer, problems);
    problems.throw_if_any();
  }
  const onnx::ExportOptions options{.flavour = onnx::Flavour::qonnx};
  const onnx::Model model = written(graph, options);
  EXPECT_EQ(std::count_if(model.graph.nodes.begin(), model.graph.nodes.end(),
                          [](const onnx::NodeData& node) { return node.op == "Quant"; }),
            7);  // data_in, weight, bias, data_out; data_in, weight, data_out
  expect_same(graph, read_again(graph, options).graph);
}

TEST(OnnxRoundTrip, MasksComeBack) {
  const Graph graph = pruned_network();
  for (const onnx::Flavour flavour : {onnx::Flavour::plain, onnx::Flavour::qonnx}) {
    const Graph network = flavour == onnx::Flavour::plain ? graph : quantised(graph);
    const onnx::Imported again = read_again(network, {.flavour = flavour});
    expect_same(network, again.graph);
    EXPECT_TRUE(again.notes.empty());
    const TensorTable &before = graph.modules().at("seq_blocks.2").masks,
                      &after = again.graph.modules().at("seq_blocks.2").masks;
    ASSERT_EQ(after.size(), 1u);
    EXPECT_EQ(std::memcmp(after[0].second.raw(), before[0].second.raw(), before[0].second.bytes()),
              0);
  }
}

TEST(OnnxRoundTrip, OlderOperatorSetsTellItToo) {
  for (const int64_t operator_set : {13, 17, 21}) {
    const Graph graph = make_model("toy_convnet", {.seed = 3});
    expect_same(graph, read_again(graph, {.operator_set = operator_set}).graph);
  }
}

}  // namespace
}  // namespace mase::onnx_round_trip_test
