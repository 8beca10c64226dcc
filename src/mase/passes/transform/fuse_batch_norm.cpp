// SPDX-License-Identifier: Apache-2.0
// fuse_batch_norm: Linear -> BatchNorm  =>  Linear, for evaluation, and so for every other product
// with a weight.
//   s = gamma / sqrt(var + eps)    W' = s W    b' = s (b - mean) + beta
// A pair is left alone, with a reason, when the layer is used elsewhere or shared, is
// quantised already (its rounded weights would no longer be the same; `quantized` folds it all the
// same, for training to go on), or the batch-norm keeps no running statistics.
#include <algorithm>
#include <cmath>
#include <vector>

#include "mase/base/fields.h"
#include "mase/formats/number_type.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/passes/metadata.h"

namespace mase::fuse_batch_norm_pass {
namespace {

int64_t calls_of(const Graph& graph, const std::string& path) {
  int64_t calls = 0;
  for (const NodeId id : graph.order())
    calls += graph.node(id).kind == NodeKind::call_module && graph.node(id).target == path;
  return calls;
}

// Why the pair stays as it is; empty if it can be fused.
std::string obstacle(const Graph& graph, const Node& linear, const Node& norm, bool quantized) {
  const Module& layer = *graph.module_of(linear);
  const std::string name = "the " + mase_op(graph, linear) + " layer";
  const Module& batch_norm = *graph.module_of(norm);
  if (graph.users(linear.id).size() != 1) return name + "'s result is used elsewhere";
  if (calls_of(graph, linear.target) != 1) return name + " is shared";
  if (calls_of(graph, norm.target) != 1) return "the batch-norm is shared";
  if (!layer.quantization.config.is_null() && !quantized) return name + " is quantised: fuse first";
  if (layer.quantization.find("data_out"))
    return name + "'s result is rounded before the batch-norm";
  if (!batch_norm.quantization.config.is_null()) return "the batch-norm is quantised: fuse first";
  if (!batch_norm.find("running_mean")) return "the batch-norm keeps no running statistics";
  const auto rank =
      static_cast<int64_t>(infer_shapes(graph, 2)[static_cast<size_t>(linear.id)].size());
  const auto axis = [rank](int64_t given) { return given < 0 ? given + rank : given; };
  if (axis(op_of(graph, linear)->product->channel_axis) !=
      axis(op_of(graph, norm)->channel_norm->channel_axis))
    return "the batch-norm's channels are not " + name + "'s outputs";
  if (op_of(graph, linear)->product->out_axis != 0)
    return name + " keeps its output channels inside the weight";
  return "";
}

void fuse(Module& linear, const Module& norm) {
  const size_t out = static_cast<size_t>(linear.find("weight")->shape()[0]);
  const size_t in = static_cast<size_t>(linear.find("weight")->numel()) / std::max<size_t>(1, out);
  if (!linear.find("bias")) {
    linear.attributes.dict().set("bias", true);
    linear.parameters.emplace_back("bias", Tensor(Shape{static_cast<int64_t>(out)}));
  }
  float* weight = linear.find("weight")->mutable_data<float>();
  float* bias = linear.find("bias")->mutable_data<float>();
  const double eps = norm.attributes["eps"].as_double();
  const Tensor* gamma = norm.find("weight");
  const Tensor* beta = norm.find("bias");
  std::vector<double> scales(out);
  for (size_t o = 0; o < out; ++o) {
    const int64_t row = static_cast<int64_t>(o);
    const double mean = norm.find("running_mean")->item(row);
    const double scale =
        (gamma ? gamma->item(row) : 1.0) / std::sqrt(norm.find("running_var")->item(row) + eps);
    scales[o] = scale;
    for (size_t i = 0; i < in; ++i)
      weight[o * in + i] = static_cast<float>(weight[o * in + i] * scale);
    bias[o] = static_cast<float>((bias[o] - mean) * scale + (beta ? beta->item(row) : 0.0));
  }
  // Other weights: a step or clip of each output is scaled with them, so that the codes stay;
  // everything else that quantisers learned is found anew.
  for (const LearnedOperand& learned : learned_operands(linear)) {
    if (is_activation(learned.operand)) continue;
    Tensor* const number = linear.find(learned.parameter);
    const bool scaled = learned.quantizer->type && learned.quantizer->type->as<Scaled>();
    if (number && scaled && learned.operand == "weight" && out > 1 &&
        number->numel() == static_cast<int64_t>(out)) {
      float* const steps = number->mutable_data<float>();
      for (size_t o = 0; o < out; ++o)
        if (scales[o] != 0) steps[o] = static_cast<float>(steps[o] * std::abs(scales[o]));
    } else {
      std::erase_if(linear.parameters,
                    [&](const auto& entry) { return entry.first == learned.parameter; });
    }
  }
  fit_learned_parameters(linear);
}

PassResult run(Graph& graph, const Value& args, PassContext&) {
  List fused;
  Dict left;
  const std::vector<NodeId> order = graph.order();
  for (const NodeId id : order) {
    const Node& norm = graph.node(id);
    if (norm.kind != NodeKind::call_module || !op_of(graph, norm)->channel_norm) continue;
    const NodeId source = graph.inputs_of(id).front();
    const Node& linear = graph.node(source);
    if (linear.kind != NodeKind::call_module || !op_of(graph, linear)->product) {
      left.set(norm.name, "no product with a weight before it");
      continue;
    }
    const std::string why = obstacle(graph, linear, norm, args["quantized"].as_bool());
    if (!why.empty()) {
      left.set(norm.name, why);
      continue;
    }
    fused.push_back(linear.name + " + " + norm.name);
    fuse(*graph.module_of(graph.node(source)), *graph.module_of(norm));
    graph.replace_uses(id, source);
    graph.erase(id);
    graph.node(source).meta.erase("software");  // statistics of other weights
  }
  const bool changed = !fused.empty();
  return {Dict{{"fused", std::move(fused)}, {"left_alone", std::move(left)}}, changed};
}

const Register<PassRecord> registered{{
    .name = "fuse_batch_norm",
    .aliases = {"fuse_batch_norm_transform_pass", "conv_bn_fusion",
                "conv_bn_fusion_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Batch-norms folded into the linear layers before them",
    .help = "Outputs in evaluation mode change by rounding only. Quantise after fusing.",
    .schema = {.fields = {boolean_field("quantized",
                                        "fold quantised layers too; their formats then round other "
                                        "weights, so train on",
                                        false)}},
    .run = run,
    .tolerance = 1e-4,
}};

}  // namespace
}  // namespace mase::fuse_batch_norm_pass
