// SPDX-License-Identifier: Apache-2.0
// Normalisations and softmax.
#include <algorithm>

#include "mase/io/onnx/read/operator.h"
#include "mase/io/onnx/read/tensor_moves.h"

namespace mase::onnx::normalization_operators {
namespace {

// All dimensions but the channels', for means.
Dict over_all_but_channels(const Operand& x, bool keep) {
  List dims;
  for (size_t i = 0; i < x.rank(); ++i)
    if (i != 1) dims.emplace_back(static_cast<int64_t>(i));
  return Dict{{"dim", Value(dims)}, {"keepdim", keep}};
}

// A number for each channel as [C, 1, ...].
Operand along_channels(NodeContext& context, const Operand& numbers, const Operand& x) {
  Shape shape(x.rank() - 1, 1);
  shape.front() = x.shape[1];
  return context.reshape(numbers, shape);
}

// By the statistics of the batch that is there.
void batch_norm_in_training(NodeContext& context) {
  const Operand& x = context.input(0);
  if (!context.whole()) context.needs_batch("it normalises by the statistics of the batch");
  if (x.rank() < 2) context.fail("its input has no channels");
  const double momentum = context.number("momentum", 0.9);
  const Operand mean = context.call("mean", {x}, over_all_but_channels(x, true));
  const Operand centred = context.call("sub", {x, mean});
  const Operand variance =
      context.call("mean", {context.call("square", {centred})}, over_all_but_channels(x, true));
  const Operand root = context.call(
      "rsqrt", {context.call("add", {variance, context.scalar(context.number("epsilon", 1e-5))})});
  const Operand scaled = context.call(
      "mul", {context.call("mul", {centred, root}), along_channels(context, context.input(1), x)});
  context.result(0, context.call("add", {scaled, along_channels(context, context.input(2), x)}));
  const auto running = [&](size_t index, const Operand& now, size_t old) {
    const Operand kept = context.call("mul", {context.input(old), context.scalar(momentum)});
    const Operand added =
        context.call("mul", {context.reshape(now, {x.shape[1]}), context.scalar(1 - momentum)});
    context.result(index, context.call("add", {added, kept}));
  };
  running(1, mean, 3);
  running(2, variance, 4);
}

void batch_norm(NodeContext& context) {
  const Operand& x = context.input(0);
  // Before there was the attribute, further results said it, and executors differ in what they are.
  constexpr int64_t training_mode_since = 14;
  if (context.version() < training_mode_since)
    for (size_t i = 1; i < context.node().outputs.size(); ++i)
      if (!context.node().outputs[i].empty())
        context.fail("the model was exported for training", "export it in evaluation mode");
  if (context.integer("training_mode", 0) != 0) return batch_norm_in_training(context);
  const size_t rank = x.rank();
  if (rank != 2 && rank != 3 && rank != 4)
    context.fail(fmt::format("an input of rank {}: only 2, 3 and 4 are read", rank));
  for (size_t i = 1; i < 5; ++i) context.constant(i, "a parameter of BatchNormalization");
  const double momentum = decimal_of(1 - context.number("momentum", 0.9));
  context.result(0, context.layer(rank == 4 ? "batch_norm2d" : "batch_norm1d",
                                  Dict{{"num_features", x.shape[1].number()},
                                       {"eps", context.number("epsilon", 1e-5)},
                                       {"momentum", momentum}},
                                  {{"weight", context.input(1)},
                                   {"bias", context.input(2)},
                                   {"running_mean", context.input(3)},
                                   {"running_var", context.input(4)}},
                                  x));
}

// The mean, and one over the deviation, which the layer does not give.
void layer_statistics(NodeContext& context, int64_t axis) {
  if (!context.output_is_used(1) && !context.output_is_used(2)) return;
  const Operand& x = context.input(0);
  List dims;
  for (int64_t i = axis; i < static_cast<int64_t>(x.rank()); ++i) dims.emplace_back(i);
  const Dict over{{"dim", Value(dims)}, {"keepdim", true}};
  const Operand mean = context.call("mean", {x}, over);
  const Operand centred = context.call("sub", {x, mean});
  const Operand variance = context.call("mean", {context.call("square", {centred})}, over);
  const Operand eps = context.scalar(context.number("epsilon", 1e-5));
  context.result(1, mean);
  context.result(2, context.call("rsqrt", {context.call("add", {variance, eps})}));
}

void layer_norm(NodeContext& context) {
  const Operand& x = context.input(0);
  const int64_t axis = context.checked_axis(context.integer("axis", -1), x.rank());
  const Sizes own(x.shape.begin() + axis, x.shape.end());
  if (own.has_batch()) context.needs_batch("it normalises over the batch");
  const Shape normalized = own;
  const auto fits = [&](size_t index) {
    return !context.has(index) ||
           (context.input(index).is_constant() &&
            context.input(index).constant->tensor.numel() == element_count(normalized));
  };
  Dict attributes{{"normalized_shape", Value::of(normalized)},
                  {"eps", context.number("epsilon", 1e-5)}};
  Operand result;
  if (fits(1) && fits(2)) {
    Operand bias = context.has(2) ? context.input(2) : context.constant_operand(Tensor(normalized));
    result =
        context.layer("layer_norm", attributes, {{"weight", context.input(1)}, {"bias", bias}}, x);
  } else {
    attributes.set("elementwise_affine", false);
    result =
        context.call("mul", {context.layer("layer_norm", attributes, {}, x), context.input(1)});
    if (context.has(2)) result = context.call("add", {result, context.input(2)});
  }
  context.result(0, result);
  layer_statistics(context, axis);
}

void rms_norm(NodeContext& context) {
  const Operand& x = context.input(0);
  const int64_t axis = context.checked_axis(context.integer("axis", -1), x.rank());
  const Sizes own(x.shape.begin() + axis, x.shape.end());
  if (own.has_batch()) context.needs_batch("it normalises over the batch");
  const Shape normalized = own;
  const Dict attributes{{"normalized_shape", Value::of(normalized)},
                        {"eps", context.number("epsilon", 1e-5)}};
  const Operand& scale = context.input(1);
  if (scale.is_constant() && scale.constant->tensor.numel() == element_count(normalized))
    return context.result(0, context.layer("rms_norm", attributes, {{"weight", scale}}, x));
  Dict plain = attributes;
  plain.set("elementwise_affine", false);
  context.result(0, context.call("mul", {context.layer("rms_norm", plain, {}, x), scale}));
}

void instance_norm(NodeContext& context) {
  const Operand& x = context.input(0);
  if (x.rank() != 3 && x.rank() != 4)
    context.fail(fmt::format("an input of rank {}: only 3 and 4 are read", x.rank()));
  context.constant(1, "the scale");
  context.constant(2, "the bias");
  context.result(0, context.layer(x.rank() == 4 ? "instance_norm2d" : "instance_norm1d",
                                  Dict{{"num_features", x.shape[1].number()},
                                       {"eps", context.number("epsilon", 1e-5)},
                                       {"affine", true}},
                                  {{"weight", context.input(1)}, {"bias", context.input(2)}}, x));
}

void group_norm(NodeContext& context) {
  const Operand& x = context.input(0);
  if (x.rank() < 2) context.fail("its input has no channels");
  const int64_t groups = context.integer("num_groups", 0), channels = x.shape[1];
  if (groups < 1 || channels % groups != 0)
    context.fail(fmt::format("{} groups of {} channels", groups, channels));
  // Operator set 18 has one number for each group, later ones for each channel.
  const auto per_channel_of = [&](size_t index) {
    Operand parameter = context.materialized(context.input(index));
    const Tensor& tensor = context.constant(index, "a parameter of GroupNormalization");
    if (tensor.numel() == groups && channels != groups) {
      std::vector<int64_t> indices;
      for (int64_t c = 0; c < channels; ++c) indices.push_back(c / (channels / groups));
      parameter.constant->tensor = gathered(tensor.reshaped({groups}), 0, indices, Shape{channels});
      parameter.shape = {channels};
    }
    return parameter;
  };
  context.result(0, context.layer("group_norm",
                                  Dict{{"num_groups", groups},
                                       {"num_channels", channels},
                                       {"eps", context.number("epsilon", 1e-5)}},
                                  {{"weight", per_channel_of(1)}, {"bias", per_channel_of(2)}}, x));
}

void softmax(NodeContext& context, const char* op) {
  const Operand& x = context.input(0);
  constexpr int64_t one_axis_since = 13;
  const bool flattens = context.version() < one_axis_since;
  const int64_t axis = context.checked_axis(context.integer("axis", flattens ? 1 : -1), x.rank());
  if (!flattens || axis + 1 == static_cast<int64_t>(x.rank()))
    return context.result(0, context.call(op, {x}, Dict{{"dim", axis}}));
  // Before, all dimensions from the axis on were one.
  Sizes shape(x.shape.begin(), x.shape.begin() + axis);
  shape.push_back(element_count(Sizes(x.shape.begin() + axis, x.shape.end())));
  const Operand flat = context.call(op, {context.reshape(x, shape)}, Dict{{"dim", axis}});
  context.result(0, context.reshape(flat, x.shape));
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>({.name = "BatchNormalization",
                            .summary = "BatchNorm1d or BatchNorm2d",
                            .convert = batch_norm}),
    Register<OnnxOperator>(
        {.name = "LayerNormalization", .summary = "LayerNorm", .convert = layer_norm}),
    Register<OnnxOperator>(
        {.name = "RMSNormalization",
         .aliases = {"SimplifiedLayerNormalization", "com.microsoft::SimplifiedLayerNormalization"},
         .summary = "RMSNorm",
         .convert = rms_norm}),
    Register<OnnxOperator>({.name = "InstanceNormalization",
                            .summary = "InstanceNorm1d or InstanceNorm2d",
                            .convert = instance_norm}),
    Register<OnnxOperator>(
        {.name = "GroupNormalization", .summary = "GroupNorm", .convert = group_norm}),
    Register<OnnxOperator>({.name = "Softmax",
                            .summary = "softmax",
                            .convert = [](NodeContext& c) { softmax(c, "softmax"); }}),
    Register<OnnxOperator>({.name = "LogSoftmax",
                            .summary = "log_softmax",
                            .convert = [](NodeContext& c) { softmax(c, "log_softmax"); }}),
};

}  // namespace
}  // namespace mase::onnx::normalization_operators
