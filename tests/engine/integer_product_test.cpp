// SPDX-License-Identifier: Apache-2.0
// Layers of 8-bit operands, whichever way they are computed: sums that stay below 2^24 are exact,
// so the result is the oracle's to the bit. Where the processor multiplies integers the program
// says that it does, and what does not fit is computed otherwise.
#include <cmath>
#include <limits>

#include "mase/base/random.h"
#include "mase/engine/kernels/integer_dot.h"
#include "mase/engine/program.h"
#include "mase/formats/format.h"
#include "mase/ir/evaluate.h"
#include "support/random_tensor.h"
#include "support/support.h"

namespace mase::integer_product_test {
namespace {

struct Layer {
  std::string op;
  Dict attributes;
  Shape sample;
};

const std::vector<Layer> layers = {
    {"linear", Dict{{"in_features", 70}, {"out_features", 33}}, {70}},
    {"linear", Dict{{"in_features", 1100}, {"out_features", 9}}, {1100}},
    {"linear", Dict{{"in_features", 48}, {"out_features", 40}}, {7, 48}},
    {"conv2d",
     Dict{{"in_channels", 13}, {"out_channels", 19}, {"kernel_size", 3}, {"padding", 1}},
     {13, 9, 11}},
    {"conv2d",
     Dict{{"in_channels", 30},
          {"out_channels", 12},
          {"kernel_size", 3},
          {"stride", 2},
          {"padding", 1}},
     {30, 8, 8}},
    {"conv2d", Dict{{"in_channels", 64}, {"out_channels", 24}, {"kernel_size", 1}}, {64, 5, 5}},
    {"conv2d",
     Dict{{"in_channels", 9},
          {"out_channels", 16},
          {"kernel_size", 3},
          {"dilation", 2},
          {"bias", false}},
     {9, 12, 12}},
};

Graph network(const Layer& layer, bool is_signed, double weight_size) {
  Graph graph;
  graph.name = layer.op;
  const NodeId x = graph.add_placeholder("x", layer.sample);
  Module module = make_module(layer.op, layer.attributes, 3, "layer");
  Random random(8, "weights");
  for (auto& [name, parameter] : module.parameters)
    for (int64_t i = 0; i < parameter.numel(); ++i)
      parameter.mutable_data<float>()[i] = static_cast<float>(random.normal() * weight_size);
  const auto fixed = [](bool with_sign, int width, int frac) {
    return make_quantizer("integer",
                          Dict{{"width", width}, {"frac_width", frac}, {"is_signed", with_sign}});
  };
  module.quantization.operands["data_in"] = fixed(is_signed, 8, 4);
  module.quantization.operands["weight"] = fixed(true, 8, 6);
  if (module.find("bias")) module.quantization.operands["bias"] = fixed(true, 8, 5);
  graph.add_output({graph.add_module("layer", std::move(module), {x})});
  return graph;
}

Tensor run(const Graph& graph, const Tensor& x, int threads, std::string* dump = nullptr) {
  CompileOptions options;
  options.batch_size = x.shape()[0];
  options.threads = threads;
  Program program = Program::compile(graph, options);
  if (dump) *dump = program.dump();
  Batch batch;
  batch.inputs = {RowTensor(x)};
  batch.size = x.shape()[0];
  program.forward(batch);
  Shape shape = evaluate(graph, {Array::from(x)})[0].shape;
  Tensor out(shape);
  program.read_output(0, out.mutable_data<float>());
  return out;
}

Tensor inputs(const Layer& layer, int64_t samples) {
  Shape shape = layer.sample;
  shape.insert(shape.begin(), samples);
  return test::random_tensor(shape, 4, 5);
}

TEST(IntegerProduct, IsTheOraclesToTheBit) {
  for (const Layer& layer : layers)
    for (const bool is_signed : {true, false})
      for (const int64_t samples : {1, 3, 17}) {
        const Graph graph = network(layer, is_signed, 0.3);
        const Tensor x = inputs(layer, samples);
        const Array wanted = evaluate(graph, {Array::from(x)})[0];
        std::string dump;
        const Tensor got = run(graph, x, 1, &dump);
        EXPECT_EQ(dump.find("integers") != std::string::npos, kernels::has_integer_dot()) << dump;
        for (int64_t i = 0; i < got.numel(); ++i)
          ASSERT_EQ(got.data<float>()[i], static_cast<float>(wanted.data[static_cast<size_t>(i)]))
              << layer.op << " " << samples << " at " << i;
        EXPECT_TRUE(got.same_bits(run(graph, x, 2)));
      }
}

TEST(IntegerProduct, WhatIsNoCodeIsComputedAsBefore) {
  const Layer& layer = layers[0];
  const Graph graph = network(layer, true, 0.3);
  Tensor x = inputs(layer, 5);
  x.mutable_data<float>()[71] = std::numeric_limits<float>::quiet_NaN();  // of the second sample
  const Array wanted = evaluate(graph, {Array::from(x)})[0];
  const Tensor got = run(graph, x, 1);
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double value = wanted.data[static_cast<size_t>(i)];
    EXPECT_EQ(std::isnan(got.data<float>()[i]), std::isnan(value)) << i;
    if (!std::isnan(value)) {
      EXPECT_EQ(got.data<float>()[i], static_cast<float>(value)) << i;
    }
  }
}

TEST(IntegerProduct, SumsBeyondFloat32AreComputedInFloat32) {
  const Layer layer{"linear", Dict{{"in_features", 3000}, {"out_features", 8}}, {3000}};
  const Graph graph = network(layer, true, 100);  // every weight at an end of its range
  const Tensor x = inputs(layer, 4);
  const Array wanted = evaluate(graph, {Array::from(x)})[0];
  const Tensor got = run(graph, x, 1);
  for (int64_t i = 0; i < got.numel(); ++i)
    EXPECT_NEAR(got.data<float>()[i], wanted.data[static_cast<size_t>(i)], 0.01);
}

}  // namespace
}  // namespace mase::integer_product_test
