// SPDX-License-Identifier: Apache-2.0
// Networks with other numbers of channels: shapes follow, a wider network computes what the old one
// did, a narrower one keeps its largest channels, and what cannot be is told.
#include "mase/passes/channels.h"
#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase::channels_test {
namespace {

Tensor rows_for(const Graph& graph, int64_t rows) {
  Shape shape = graph.node(graph.placeholders()[0]).sample_shape;
  shape.insert(shape.begin(), rows);
  Random random(3, "rows");
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (float& value : values) value = static_cast<float>(random.normal());
  return Tensor::of(shape, values);
}

// Running statistics and normalisation that are not the identity.
Graph lived_in(const std::string& model) {
  Graph graph = make_model(model, {.seed = 7});
  Random random(11, "state");
  for (auto& [path, module] : graph.modules())
    for (auto& [name, tensor] : module.buffers)
      if (tensor.dtype() == DType::f32)
        for (int64_t i = 0; i < tensor.numel(); ++i)
          tensor.mutable_data<float>()[i] = static_cast<float>(
              name == "running_mean" ? 0.2 * random.normal() : 0.5 + random.uniform());
  return graph;
}

double largest_difference(const Graph& a, const Graph& b, int64_t rows) {
  const Tensor x = rows_for(a, rows);
  const Tensor left = run(a, {x})[0], right = run(b, {x})[0];
  EXPECT_EQ(left.shape(), right.shape());
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < left.numel(); ++i)
    worst = std::max(worst, std::abs(left.item(i) - right.item(i)));
  for (int64_t i = 0; i < left.numel(); ++i) largest = std::max(largest, std::abs(left.item(i)));
  EXPECT_GT(largest, 0.1);  // not everything behind the last ReLU is zero
  return worst;
}

TEST(Channels, AWiderNetworkComputesTheSame) {
  const Graph mlp = lived_in("jsc-toy");
  const Graph wider = resize_channels(mlp, {{"seq_blocks_2", 16}, {"seq_blocks_5", 21}});
  EXPECT_EQ(wider.modules().at("seq_blocks.2").attributes["out_features"].as_int(), 16);
  EXPECT_EQ(wider.modules().at("seq_blocks.3").attributes["num_features"].as_int(), 16);
  EXPECT_EQ(wider.modules().at("seq_blocks.5").attributes["in_features"].as_int(), 16);
  EXPECT_LT(largest_difference(mlp, wider, 64), 1e-5);
  // Through convolutions, pooling and flattening too.
  const Graph images = lived_in("lenet");
  std::map<std::string, int64_t> outputs;
  for (const NodeId id : images.order()) {
    const int64_t channels = output_channels(images, images.node(id));
    if (channels > 10) outputs[images.node(id).name] = channels * 2;
  }
  ASSERT_GE(outputs.size(), 2u);
  EXPECT_LT(largest_difference(images, resize_channels(images, outputs), 3), 1e-4);
}

TEST(Channels, NoiseTellsCopiesApart) {
  const Graph mlp = lived_in("jsc-toy");
  const Graph noisy = resize_channels(mlp, {{"seq_blocks_2", 16}}, {.noise = 0.05, .seed = 1});
  const Tensor& weight = *noisy.modules().at("seq_blocks.2").find("weight");
  bool apart = false;
  for (int64_t i = 0; i < 8 * 16; ++i) apart = apart || weight.item(i) != weight.item(i + 8 * 16);
  EXPECT_TRUE(apart);
  EXPECT_GT(largest_difference(mlp, noisy, 64), 0);
  EXPECT_LT(largest_difference(mlp, noisy, 64), 2);
}

TEST(Channels, ANarrowerNetworkKeepsItsLargestChannels) {
  Graph mlp = lived_in("jsc-toy");
  Tensor& weight = *mlp.modules().at("seq_blocks.2").find("weight");
  // Channels 1 and 6 are made the largest.
  for (int64_t i = 0; i < weight.numel(); ++i)
    if (i / 16 == 1 || i / 16 == 6) weight.mutable_data<float>()[i] = static_cast<float>(9 + i % 3);
  const Graph narrow = resize_channels(mlp, {{"seq_blocks_2", 2}});
  const Tensor& kept = *narrow.modules().at("seq_blocks.2").find("weight");
  ASSERT_EQ(kept.shape(), (Shape{2, 16}));
  for (int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(kept.item(i), weight.item(16 + i));
    EXPECT_EQ(kept.item(16 + i), weight.item(6 * 16 + i));
  }
}

TEST(Channels, WhatCannotBeIsTold) {
  const Graph mlp = make_model("jsc-toy");
  const auto cause = [&](const std::map<std::string, int64_t>& outputs) {
    try {
      resize_channels(mlp, outputs);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(cause({{"seq_blocks_8", 9}}).find("network's outputs"), std::string::npos);
  EXPECT_NE(cause({{"seq_blocks_1", 9}}).find("multiplies by no weight"), std::string::npos);
  EXPECT_NE(cause({{"seq_blocks_99", 9}}).find("is no node"), std::string::npos);
  EXPECT_NE(cause({{"seq_blocks_2", 0}}).find("is no number of channels"), std::string::npos);
}

}  // namespace
}  // namespace mase::channels_test
