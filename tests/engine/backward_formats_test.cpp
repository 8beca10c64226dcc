// SPDX-License-Identifier: Apache-2.0
// Rounded operands of a convolution's backward products: one window over the whole image is a
// linear layer over the flattened image, and its gradients are that layer's.
#include <cmath>
#include <map>

#include "mase/engine/program.h"
#include "mase/ir/op.h"
#include "mase/passes/pass.h"
#include "mase/train/loss.h"
#include "support/random_tensor.h"
#include "support/support.h"

namespace mase::backward_formats_test {
namespace {

using test::random_tensor;

constexpr int64_t rows = 6, channels = 2, side = 3, outputs = 4;

Module layer_of(bool convolution) {
  Dict sizes{{"in_features", channels * side * side}, {"out_features", outputs}};
  if (convolution)
    sizes = {{"in_channels", channels}, {"out_channels", outputs}, {"kernel_size", side}};
  Module module = make_module(convolution ? "conv2d" : "linear", Value(sizes), 0, "layer");
  Tensor weight = random_tensor({outputs, channels * side * side}, 0.5, 4);
  *module.find("weight") = convolution ? weight.reshaped({outputs, channels, side, side}) : weight;
  *module.find("bias") = random_tensor({outputs}, 0.5, 5);
  return module;
}

Graph network(bool convolution, const Dict& formats) {
  Graph graph;
  graph.name = "net";
  const NodeId x = graph.add_placeholder("x", {channels, side, side});
  Module before = make_module(
      "conv2d",
      Value(Dict{{"in_channels", channels}, {"out_channels", channels}, {"kernel_size", 1}}), 1,
      "before");
  NodeId y = graph.add_module("before", std::move(before), {x});
  if (!convolution) y = graph.call_function("flatten", {Argument::node(y), Argument::literal(1)});
  y = graph.add_module("layer", layer_of(convolution), {y});
  if (convolution) y = graph.call_function("flatten", {Argument::node(y), Argument::literal(1)});
  graph.add_output({y});
  PassContext context;
  run_pass(graph, "training_base",
           Dict{{"by", "name"},
                {"default", Dict{{"config", Dict{{"name", Value()}}}}},
                {"layer", Dict{{"config", Value(formats)}}}},
           context);
  return graph;
}

std::map<std::string, std::vector<float>> gradients(
    const Graph& graph, const Tensor& x = random_tensor({rows, channels, side, side}, 1, 2),
    const Tensor& targets = random_tensor({rows, outputs}, 2, 3)) {
  CompileOptions options;
  options.training = true;
  options.batch_size = x.dim(0);
  options.loss = make_loss("mse", {}, false);
  Program program = Program::compile(graph, options);
  Batch batch;
  batch.inputs = {x};
  batch.target = targets;
  batch.size = x.dim(0);
  program.forward_backward(batch);
  std::map<std::string, std::vector<float>> result;
  for (const ParameterView& view : program.parameters())
    result[view.name].assign(view.gradient.begin(), view.gradient.end());
  return result;
}

Dict fixed(std::vector<std::string> operands, int64_t width, int64_t frac) {
  Dict result{{"pass", "quantize"}, {"name", "integer"}};
  for (const std::string& operand : operands) {
    result.set(operand + "_width", width);
    result.set(operand + "_frac_width", frac);
  }
  return result;
}

TEST(BackwardFormats, OfAConvolutionAreThoseOfTheLayerItIs) {
  const Dict none{{"bypass", true}};
  const Dict front = fixed({"data_in", "weight"}, 5, 2);
  for (const Dict& forward : {none, front})
    for (const std::vector<std::string>& operands : {std::vector<std::string>{"output_grad"},
                                                     {"data_in", "weight"},
                                                     {"output_grad", "data_in", "weight"}}) {
      const Dict formats{{"forward", Value(forward)}, {"backward", Value(fixed(operands, 6, 3))}};
      const auto wanted = gradients(network(false, formats));
      const auto got = gradients(network(true, formats));
      const auto plain = gradients(network(true, Dict{{"forward", Value(forward)}}));
      bool rounded = false;
      for (const auto& [name, values] : wanted)
        for (size_t i = 0; i < values.size(); ++i) {
          EXPECT_NEAR(got.at(name)[i], values[i], 1e-5 + 1e-4 * std::abs(values[i])) << name << i;
          rounded = rounded || std::abs(plain.at(name)[i] - values[i]) > 1e-3;
        }
      EXPECT_TRUE(rounded);
    }
}

// A layer over positions, as a layer or as a function of constants.
Graph layer_of_positions(const Shape& sample, bool function, const Dict& formats) {
  Graph graph;
  graph.name = "positions";
  const NodeId x = graph.add_placeholder("x", sample);
  NodeId y = -1;
  const Tensor weight = random_tensor({outputs, sample.back()}, 0.5, 4);
  const Tensor bias = random_tensor({outputs}, 0.5, 5);
  if (function) {
    const NodeId w = graph.add_constant("layer.weight", weight, true);
    const NodeId b = graph.add_constant("layer.bias", bias, true);
    y = graph.call_function("linear", {Argument::node(x), Argument::node(w), Argument::node(b)});
  } else {
    Module layer = make_module(
        "linear", Value(Dict{{"in_features", sample.back()}, {"out_features", outputs}}), 0, "l");
    *layer.find("weight") = weight;
    *layer.find("bias") = bias;
    y = graph.add_module("layer", std::move(layer), {x});
  }
  graph.add_output({y});
  PassContext context;
  run_pass(graph, "training_base",
           Dict{{"by", "type"}, {"linear", Dict{{"config", Value(formats)}}}}, context);
  return graph;
}

// What is rounded for the backward pass are the float values, whatever layout lies between.
TEST(BackwardFormats, OfPositionsAreRoundedOnce) {
  constexpr int64_t positions = 5, width = 6;
  const Tensor x = random_tensor({rows, positions, width}, 1, 2);
  const Tensor targets = random_tensor({rows, positions, outputs}, 2, 3);
  const Dict formats{{"forward", Value(fixed({"data_in", "weight"}, 4, 1))},
                     {"backward", Value(fixed({"output_grad", "data_in", "weight"}, 8, 6))}};
  const auto wanted =
      gradients(layer_of_positions({width}, false, formats), x.reshaped({rows * positions, width}),
                targets.reshaped({rows * positions, outputs}));
  const auto got = gradients(layer_of_positions({positions, width}, false, formats), x, targets);
  for (const auto& [name, values] : wanted)
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(got.at(name)[i], values[i], 1e-6 + 1e-5 * std::abs(values[i])) << name << i;
}

TEST(BackwardFormats, OfAFunctionAreThoseOfTheLayer) {
  constexpr int64_t positions = 5, width = 6;
  const Tensor x = random_tensor({rows, positions, width}, 1, 2);
  const Tensor targets = random_tensor({rows, positions, outputs}, 2, 3);
  const Dict formats{{"forward", Value(fixed({"data_in", "weight", "bias"}, 4, 1))},
                     {"backward", Value(fixed({"output_grad", "data_in", "weight"}, 3, 1))}};
  const auto layer = gradients(layer_of_positions({positions, width}, false, formats), x, targets);
  const Graph function = layer_of_positions({positions, width}, true, formats);
  EXPECT_EQ(gradients(function, x, targets), layer);
  EXPECT_TRUE(run(function, {x})[0].same_bits(
      run(layer_of_positions({positions, width}, false, formats), {x})[0]));
}

TEST(BackwardFormats, OfAWeightThatDependsOnTheBatchAreRefused) {
  Graph graph;
  graph.name = "own weights";
  const NodeId x = graph.add_placeholder("x", {6});
  graph.add_output({graph.call_function("linear", {Argument::node(x), Argument::node(x)})});
  PassContext context;
  const Dict formats{{"forward", Value(Dict{{"bypass", true}})},
                     {"backward", Value(fixed({"output_grad"}, 6, 3))}};
  run_pass(graph, "training_base",
           Dict{{"by", "type"}, {"linear", Dict{{"config", Value(formats)}}}}, context);
  try {
    gradients(graph, random_tensor({rows, 6}, 1, 2), random_tensor({rows, rows}, 1, 2));
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot round its backward pass"), std::string::npos)
        << error.what();
  }
}

TEST(BackwardFormats, BlocksAreRefusedWhenTheyArePlanned) {
  const Dict blocks{{"pass", "quantize"},
                    {"name", "block_fp"},
                    {"output_grad_width", 8},
                    {"output_grad_exponent_width", 8},
                    {"output_grad_exponent_bias", Value()},
                    {"output_grad_block_size", List{16}}};
  try {
    network(true, Dict{{"forward", Value(Dict{{"bypass", true}})}, {"backward", Value(blocks)}});
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("output_grad of 'conv2d' cannot take block_fp"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace mase::backward_formats_test
