// SPDX-License-Identifier: Apache-2.0
// A quantised linear layer inside a program against PyTorch with MASE's quantisers: the forward
// result and the straight-through gradients of input, weight and bias, all cases; and the clipped
// estimator.
#include <cmath>
#include <map>

#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/train/loss.h"
#include "support/support.h"

namespace mase::straight_through_test {
namespace {

// A batch of eight rows, two of them empty: the mean over the batch is then an exact factor.
constexpr int64_t batch_rows = 8, rows = 6, inputs = 16, outputs = 5;

Value layer_config(int number) {
  Dict config{{"name", number == 2 ? "minifloat_ieee" : "integer"}};
  for (const std::string operand : {"data_in_", "weight_", "bias_"}) {
    config.set(operand + "width", number == 1 ? 4 : 8);
    if (number == 2) {
      config.set(operand + "exponent_width", 4);
      config.set(operand + "rounding", "reference");
    } else {
      config.set(operand + "frac_width", number == 1 ? 2 : 4);
    }
  }
  return config;
}

Module linear(const std::string& name, int64_t in, int64_t out, const Tensor& weight,
              const Tensor& bias) {
  Module module = make_module("linear", Dict{{"in_features", in}, {"out_features", out}}, 0, name);
  *module.find("weight") = weight;
  *module.find("bias") = bias;
  return module;
}

struct Network {
  Graph graph;
  NodeId layer = -1;
};

// Any gradient `go` of the layer's result, without a rounding error: the logit
//   z = sum(layer(x) * pull) + 10000
// has dloss/dz = 1/8 exactly (its sigmoid is 1, the target 0), so pull = 8 * go gives go.
// The layer before has the identity as weight: the gradient of its bias is that of x.
Network network(int number, const std::map<std::string, Tensor>& golden) {
  const auto at = [&](const char* name) { return golden.at(fmt::format("c{}.{}", number, name)); };
  Network result;
  Graph& graph = result.graph;
  const NodeId x = graph.add_placeholder("x", {inputs});
  const NodeId pull = graph.add_placeholder("pull", {outputs});
  Tensor identity({inputs, inputs});
  for (int64_t i = 0; i < inputs; ++i) identity.mutable_data<float>()[i * (inputs + 1)] = 1;
  const NodeId before =
      graph.add_module("before", linear("before", inputs, inputs, identity, Tensor({inputs})), {x});
  Module layer = linear("layer", inputs, outputs, at("w"), at("b"));
  Problems problems;
  layer.quantization = parse_quantization(
      layer_config(number), {.names = {"data_in", "weight", "bias"}}, "layer", problems);
  problems.throw_if_any();
  result.layer = graph.add_module("layer", layer, {before});
  const NodeId product =
      graph.call_function("mul", {Argument::node(result.layer), Argument::node(pull)});
  graph.add_output(
      {graph.add_module("sum",
                        linear("sum", outputs, 1, Tensor::of({1, outputs}, {1, 1, 1, 1, 1}),
                               Tensor::of({1}, {10000})),
                        {product})});
  return result;
}

// PyTorch's sums are rounded themselves: by 1.006e-6 from the exact one where a weight's gradient
// is 34, so the tolerance is relative above 1.
void expect_close(double got, double wanted, const std::string& what) {
  EXPECT_NEAR(got, wanted, 1e-6 * std::max(1.0, std::fabs(wanted))) << what;
}

void check_case(int number, const std::map<std::string, Tensor>& golden) {
  const auto at = [&](const char* name) { return golden.at(fmt::format("c{}.{}", number, name)); };
  const Network net = network(number, golden);
  CompileOptions options;
  options.training = true;
  options.batch_size = batch_rows;
  options.loss = make_loss("bce_with_logits", {}, false);
  options.keep = {net.layer};
  Program program = Program::compile(net.graph, options);
  const std::vector<float> targets(batch_rows, 0.0f);
  std::vector<float> x(batch_rows * inputs), pull(batch_rows * outputs);
  const Tensor source = at("x"), go = at("go"), y = at("y"), gx = at("gx");
  std::copy_n(source.data<float>(), rows * inputs, x.data());
  Batch batch;
  batch.inputs = {RowTensor(x, inputs), RowTensor(pull, outputs)};
  batch.target = RowTensor(targets, 1);
  batch.size = batch_rows;
  const auto gradients = [&](int64_t first, int64_t last) {
    std::fill(pull.begin(), pull.end(), 0.0f);
    for (int64_t i = first * outputs; i < last * outputs; ++i)
      pull[static_cast<size_t>(i)] = batch_rows * go.data<float>()[i];
    program.forward_backward(batch);
    std::map<std::string, std::vector<float>> result;
    for (const ParameterView& view : program.parameters())
      result[view.name].assign(view.gradient.begin(), view.gradient.end());
    return result;
  };
  auto all = gradients(0, rows);
  std::vector<float> result(batch_rows * outputs);
  program.read_node(net.layer, result.data());
  for (int64_t i = 0; i < rows * outputs; ++i)
    expect_close(result[static_cast<size_t>(i)], y.item(i), "y");
  for (const auto& [name, wanted] : {std::pair{"layer.weight", "gw"}, {"layer.bias", "gb"}})
    for (size_t i = 0; i < all.at(name).size(); ++i)
      expect_close(all.at(name)[i], at(wanted).item(static_cast<int64_t>(i)), wanted);
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<float> of_row = gradients(row, row + 1).at("before.bias");
    for (int64_t i = 0; i < inputs; ++i)
      expect_close(of_row[static_cast<size_t>(i)], gx.item(row * inputs + i), "gx");
  }
}

TEST(StraightThrough, LinearLayerAsPyTorch) {
  std::map<std::string, Tensor> golden;
  for (auto& [name, tensor] : load_safetensors(test::golden_path("torch/qlinear_ste.safetensors")))
    golden.emplace(name, tensor);
  for (int number = 0; number < 3; ++number) {
    SCOPED_TRACE(number);
    check_case(number, golden);
  }
}

TEST(StraightThrough, ClippedGradientIsZeroOutsideTheRange) {
  const auto q =
      make_quantizer("integer", Dict{{"width", 4}, {"frac_width", 2}, {"ste", "clipped"}});
  const std::vector<float> x = {0.3f, 1.75f, 1.76f, -2, -2.1f, std::nanf(""), 1e30f};
  const std::vector<float> up(x.size(), 1);
  std::vector<float> down(x.size());
  q->gradient(x.data(), up.data(), down.data(), {static_cast<int64_t>(x.size())});
  EXPECT_EQ(down, (std::vector<float>{1, 1, 0, 1, 0, 0, 0}));
}

}  // namespace
}  // namespace mase::straight_through_test
