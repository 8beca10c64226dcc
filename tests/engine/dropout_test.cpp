// SPDX-License-Identifier: Apache-2.0
// Dropout in compiled programs. The draw of an element is a published function of seed, node, step,
// feature and sample (engine/primitives/dropout.cpp); written down once more here it gives a mask
// for a network that multiplies by an input instead, and outputs and gradients must be equal.
#include <array>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/train/loss.h"
#include "support/random_tensor.h"
#include "support/support.h"

namespace mase::dropout_test {
namespace {

constexpr int64_t width = 5, samples = 23;
constexpr uint64_t seed = 77, step = 4;
constexpr double p = 0.3;

struct Network {
  Graph graph;
  NodeId dropped = -1;
};

// x -> linear -> dropout, or times a mask -> linear
Network network(bool masked) {
  Network made;
  Graph& graph = made.graph;
  graph.name = masked ? "masked" : "dropped";
  const NodeId x = graph.add_placeholder("x", {3});
  const NodeId mask = masked ? graph.add_placeholder("mask", {width}) : -1;
  const NodeId first = graph.add_module(
      "first", make_module("linear", Dict{{"in_features", 3}, {"out_features", width}}, 1, "first"),
      {x});
  made.dropped =
      masked ? graph.call_function("mul", {Argument::node(first), Argument::node(mask)})
             : graph.add_module("drop", make_module("dropout", Dict{{"p", p}}, 1, "drop"), {first});
  const NodeId last = graph.add_module(
      "last", make_module("linear", Dict{{"in_features", width}, {"out_features", 4}}, 2, "last"),
      {made.dropped});
  graph.add_output({last});
  return made;
}

Tensor mask_of(NodeId node) {
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed), 0x9E3779B9u};
  Tensor mask({samples, width});
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t f = 0; f < width; ++f) {
      const auto words = philox({static_cast<uint32_t>(s / 4), static_cast<uint32_t>(f),
                                 static_cast<uint32_t>(step), static_cast<uint32_t>(node) << 8},
                                key);
      const bool kept = words[static_cast<size_t>(s % 4)] >= p * 4294967296.0;
      mask.mutable_data<float>()[s * width + f] = kept ? static_cast<float>(1 / (1 - p)) : 0.0f;
    }
  return mask;
}

struct Result {
  double loss = 0;
  std::vector<float> gradients;
};

Result train_step(const Graph& graph, const std::vector<Tensor>& inputs, int threads) {
  CompileOptions options;
  options.training = true;
  options.batch_size = samples;
  options.seed = seed;
  options.threads = threads;
  options.loss = make_loss("cross_entropy");
  Program program = Program::compile(graph, options);
  std::vector<int32_t> labels;
  for (int32_t s = 0; s < samples; ++s) labels.push_back(s % 4);
  Batch batch;
  for (const Tensor& input : inputs) batch.inputs.emplace_back(input);
  batch.target = RowTensor(std::span<const int32_t>(labels));
  batch.size = samples;
  batch.step = step;
  Result result;
  result.loss = program.forward_backward(batch).loss;
  result.gradients.assign(program.gradient_memory().begin(), program.gradient_memory().end());
  return result;
}

TEST(Dropout, IsTheMaskThatItsDrawsAre) {
  const Network dropped = network(false), masked = network(true);
  const Tensor x = test::random_tensor({samples, 3}, 1, 9);
  const Tensor mask = mask_of(dropped.dropped);
  int64_t zeros = 0;
  for (int64_t i = 0; i < mask.numel(); ++i) zeros += mask.item(i) == 0;
  EXPECT_GT(zeros, 10);
  EXPECT_LT(zeros, 70);
  const Result wanted = train_step(masked.graph, {x, mask}, 1);
  for (const int threads : {1, 2, 3, 7}) {
    const Result got = train_step(dropped.graph, {x}, threads);
    EXPECT_NEAR(got.loss, wanted.loss, 1e-6);
    ASSERT_EQ(got.gradients.size(), wanted.gradients.size());
    for (size_t i = 0; i < wanted.gradients.size(); ++i)
      EXPECT_NEAR(got.gradients[i], wanted.gradients[i], 1e-6) << i;
  }
}

}  // namespace
}  // namespace mase::dropout_test
