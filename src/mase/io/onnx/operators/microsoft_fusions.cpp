// SPDX-License-Identifier: Apache-2.0
// What onnxruntime's optimiser makes of several nodes, and leaves in models that it saves: the
// layers that they were.
#include "mase/base/text.h"
#include "mase/io/onnx/read/products.h"
#include "mase/io/onnx/write/standard_node.h"
#include "mase/io/onnx/write/writer.h"

namespace mase::onnx::microsoft_fusion_operators {
namespace {

Operand sum(NodeContext& context, const Operand& x, size_t index) {
  return context.has(index) ? context.call("add", {x, context.input(index)}) : x;
}

Operand gelu(NodeContext& context, const Operand& x, const char* form) {
  return context.call("gelu", {x}, Dict{{"approximate", form}});
}

// x after the activation that the node names. `numbers`: what the activation takes, in its order.
Operand activated(NodeContext& context, const Operand& x, const std::vector<double>& numbers) {
  const std::string name = context.text("activation", "");
  if (name.empty()) return x;
  const bool clips = name == "Clip";
  std::vector<Attribute> attributes;
  for (size_t i = 0; i < numbers.size() && i < 2; ++i)
    attributes.push_back(number_attribute(clips    ? (i == 0 ? "min" : "max")
                                          : i == 0 ? "alpha"
                                                   : "beta",
                                          numbers[i]));
  for (const char* known : {"Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid", "Elu",
                            "Selu", "Softplus", "Softsign", "HardSwish"})
    if (name == known) return standard_node(context, name, {x}, attributes);
  context.fail(fmt::format("the activation '{}'", printable(name)));
}

void fused_matmul(NodeContext& context) {
  const auto turned = [&](const Operand& x, const char* attribute) {
    if (context.integer(attribute, 0) == 0) return x;
    const auto rank = static_cast<int64_t>(x.rank());
    if (rank < 2) context.fail("a list is turned");
    return context.call("transpose", {x}, Dict{{"dim0", rank - 2}, {"dim1", rank - 1}});
  };
  // [M, batch..., K] as [batch..., M, K].
  const auto batched = [&](const Operand& x, const char* attribute) {
    if (context.integer(attribute, 0) == 0) return x;
    const auto rank = static_cast<int64_t>(x.rank());
    if (rank < 3) context.fail("a matrix has no dimensions in front to turn");
    std::vector<int64_t> order;
    for (int64_t i = 1; i < rank - 1; ++i) order.push_back(i);
    order.push_back(0);
    order.push_back(rank - 1);
    return context.call("permute", {x}, Dict{{"dims", Value::of(order)}});
  };
  Operand result = product(context, turned(batched(context.input(0), "transBatchA"), "transA"),
                           turned(batched(context.input(1), "transBatchB"), "transB"));
  const double alpha = context.number("alpha", 1);
  if (alpha != 1) result = context.call("mul", {result, context.scalar(alpha)});
  context.result(0, result);
}

void fused_gemm(NodeContext& context) {
  std::vector<Operand> inputs;
  for (size_t i = 0; i < 3 && context.has(i); ++i) inputs.push_back(context.input(i));
  std::vector<double> numbers;
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (context.has_attribute(name)) numbers.push_back(context.number(name, 0));
  const Operand result = standard_node(context, "Gemm", inputs, context.node().attributes);
  context.result(0, activated(context, result, numbers));
}

void fused_conv(NodeContext& context) {
  std::optional<Operand> bias;
  if (context.has(2)) bias = context.input(2);
  const Operand result =
      sum(context, convolution(context, context.input(0), context.input(1), bias, false), 3);
  std::vector<double> numbers;
  if (const Attribute* given = context.node().find("activation_params"))
    for (const float number : given->numbers) numbers.push_back(static_cast<double>(number));
  context.result(0, activated(context, result, numbers));
}

// The norm of input + skip + bias; the sum is a result too.
void skip_norm(NodeContext& context, const char* op, bool has_beta) {
  if (context.output_is_used(1) || context.output_is_used(2))
    context.fail("the mean or the deviation is asked for");
  Operand added = context.call("add", {context.input(0), context.input(1)});
  added = sum(context, added, has_beta ? 4 : 3);
  std::vector<Operand> inputs = {added, context.input(2)};
  if (has_beta && context.has(3)) inputs.push_back(context.input(3));
  const double eps = context.number("epsilon", static_cast<double>(1e-12f));
  context.result(0, standard_node(context, op, inputs, {number_attribute("epsilon", eps)}));
  context.result(3, added);
}

// Embeddings of words, positions and segments, their sum and its norm.
void embed_layer_norm(NodeContext& context) {
  if (context.output_is_used(1) && context.has(7))
    context.fail("the lengths of its sentences are asked for");
  const Operand& words = context.input(0);
  if (words.rank() != 2) context.fail("its words are no sentences");
  const auto looked_up = [&](size_t table, const Operand& places) {
    return standard_node(context, "Gather", {context.input(table), places}, {});
  };
  Operand total = looked_up(2, words);
  if (context.has(8)) {
    total = context.call("add", {total, looked_up(3, context.input(8))});
  } else {  // in order
    std::vector<int64_t> places;
    const int64_t length = words.shape[1];
    if (context.input(3).rank() != 2 || length > context.input(3).shape[0])
      context.fail(fmt::format("{} words, and a table {} of positions", length,
                               shape_text(context.input(3).shape)));
    for (int64_t i = 0; i < length; ++i) places.push_back(i);
    const Operand order =
        context.constant_operand(Tensor::of<int64_t>({length}, std::span<const int64_t>(places)));
    total = context.call("add", {total, looked_up(3, order)});
  }
  if (context.has(1) && context.has(4))
    total = context.call("add", {total, looked_up(4, context.input(1))});
  const double eps = context.number("epsilon", static_cast<double>(1e-12f));
  context.result(
      0, standard_node(context, "LayerNormalization", {total, context.input(5), context.input(6)},
                       {number_attribute("epsilon", eps)}));
  context.result(2, total);
}

void quick_gelu(NodeContext& context) {
  const Operand& x = context.input(0);
  const double alpha = context.number("alpha", static_cast<double>(1.702f));
  context.result(0, standard_node(context, "Swish", {x}, {number_attribute("alpha", alpha)}));
}

OnnxOperator fused(const char* name, const char* summary,
                   std::function<void(NodeContext& context)> convert) {
  return {.name = operator_name("com.microsoft", name),
          .summary = summary,
          .convert = std::move(convert)};
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>({.name = "com.microsoft::FusedMatMul",
                            .aliases = {"com.microsoft::TransposeMatMul"},
                            .summary = "Linear with a constant matrix, else matmul; a factor",
                            .convert = fused_matmul}),
    Register<OnnxOperator>(fused("FusedGemm", "Linear and an activation", fused_gemm)),
    Register<OnnxOperator>(
        fused("FusedConv", "Conv1d or Conv2d, add and an activation", fused_conv)),
    Register<OnnxOperator>(fused("FastGelu", "add and gelu by tanh",
                                 [](NodeContext& context) {
                                   context.result(
                                       0, gelu(context, sum(context, context.input(0), 1), "tanh"));
                                 })),
    Register<OnnxOperator>(fused("BiasGelu", "add and gelu",
                                 [](NodeContext& context) {
                                   context.result(
                                       0, gelu(context, sum(context, context.input(0), 1), "none"));
                                 })),
    Register<OnnxOperator>(fused("QuickGelu", "x * sigmoid(alpha * x)", quick_gelu)),
    Register<OnnxOperator>(
        fused("SkipLayerNormalization", "add and LayerNorm",
              [](NodeContext& context) { skip_norm(context, "LayerNormalization", true); })),
    Register<OnnxOperator>(
        fused("SkipSimplifiedLayerNormalization", "add and RMSNorm",
              [](NodeContext& context) { skip_norm(context, "RMSNormalization", false); })),
    Register<OnnxOperator>(
        fused("EmbedLayerNormalization", "Embedding, add and LayerNorm", embed_layer_norm)),
};

}  // namespace
}  // namespace mase::onnx::microsoft_fusion_operators
