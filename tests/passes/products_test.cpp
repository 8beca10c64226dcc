// SPDX-License-Identifier: Apache-2.0
// Passes know a product by what its op says of itself: convolutions are folded, pruned, counted and
// quantised per channel as linear layers are.
#include <cmath>

#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/passes/costs.h"
#include "mase/passes/pass.h"
#include "passes/networks.h"

namespace mase::products_test {
namespace {

constexpr int64_t channels = 4, outputs = 6, size = 5;

// x [B, 4, 5, 5] -> Conv2d 3x3 -> BatchNorm2d
Graph convolution(int64_t groups, bool with_norm = false) {
  Graph graph;
  graph.name = "convolution";
  const NodeId x = graph.add_placeholder("x", {channels, size, size});
  NodeId y = graph.add_module("conv",
                              make_module("conv2d",
                                          Dict{{"in_channels", channels},
                                               {"out_channels", outputs},
                                               {"kernel_size", 3},
                                               {"padding", 1},
                                               {"groups", groups}},
                                          3, "conv"),
                              {x});
  if (with_norm)
    y = graph.add_module(
        "norm", make_module("batch_norm2d", Dict{{"num_features", outputs}}, 3, "norm"), {y});
  graph.add_output({y});
  Random random(7, "convolution");
  test::shake(graph, random);
  return graph;
}

Tensor images(int64_t count) {
  Random random(8, "images");
  Tensor x({count, channels, size, size});
  for (int64_t i = 0; i < x.numel(); ++i)
    x.mutable_data<float>()[i] = static_cast<float>(random.normal());
  return x;
}

TEST(Products, BatchNormsFoldIntoConvolutions) {
  for (const int64_t groups : {1, 2}) {
    Graph graph = convolution(groups, true);
    const Tensor x = images(3), before = run(graph, {x})[0];
    PassContext context;
    const Value result = run_pass(graph, "fuse_batch_norm", Dict(), context).data;
    EXPECT_EQ(result["fused"].as_list().size(), 1u);
    const Tensor after = run(graph, {x})[0];
    for (int64_t i = 0; i < before.numel(); ++i)
      ASSERT_NEAR(after.item(i), before.item(i), 1e-4) << i;
  }
}

int64_t zeros(const Tensor& weight, int64_t axis, int64_t index) {
  int64_t count = 0;
  const int64_t taps = 9;
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const int64_t at[] = {i / (channels * taps), i / taps % channels};
    if (at[axis] == index) count += weight.data<float>()[i] == 0;
  }
  return count;
}

TEST(Products, ChannelsOfConvolutionsArePruned) {
  Graph graph = convolution(1);
  PassContext context;
  run_pass(graph, "prune", Dict{{"weight", Dict{{"sparsity", 0.5}, {"granularity", "channel"}}}},
           context);
  int64_t pruned = 0;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t count = zeros(*graph.modules().at("conv").find("weight"), 0, o);
    EXPECT_TRUE(count == 0 || count == channels * 9) << o;
    pruned += count > 0;
  }
  EXPECT_EQ(pruned, outputs / 2);

  // The input channel that is always zero goes first.
  graph = convolution(1);
  context.samples = images(16);
  for (int64_t b = 0; b < 16; ++b)
    std::fill_n(context.samples.mutable_data<float>() + (b * channels + 2) * size * size,
                size * size, 0.0f);
  run_pass(graph, "prune", Dict{{"activation", Dict{{"sparsity", 0.25}}}}, context);
  for (int64_t c = 0; c < channels; ++c)
    EXPECT_EQ(zeros(*graph.modules().at("conv").find("weight"), 1, c), c == 2 ? outputs * 9 : 0);

  EXPECT_THROW(prepare_passes(convolution(2),
                              {{"prune", Dict{{"activation", Dict{{"sparsity", 0.25}}}}, "p"}}),
               Error);
}

// A weight of output o and input channel c of its group meets inputs of that channel's width.
TEST(Products, EbopsOfConvolutionsPairChannels) {
  for (const int64_t groups : {1, 2}) {
    Graph graph = convolution(groups);
    const int64_t inside = channels / groups;
    const int inputs[channels] = {3, 5, 8, 13};
    List columns, rows;
    double want = 0;
    for (const int width : inputs) columns.push_back(width);
    for (int64_t o = 0; o < outputs; ++o) {
      rows.push_back(2 + o);
      for (int64_t c = 0; c < inside; ++c)
        want += static_cast<double>(2 + o) * inputs[o / (outputs / groups) * inside + c];
    }
    PassContext context;
    run_pass(graph, "quantize",
             Dict{{"conv2d", Dict{{"config", Dict{{"name", "integer"},
                                                  {"data_in_width", columns},
                                                  {"data_in_granularity", "row"},
                                                  {"weight_width", rows},
                                                  {"weight_granularity", "row"},
                                                  {"bias_width", 4}}}}}},
             context);
    const LayerCost cost = network_cost(graph, 1).total();
    // Every weight is used at every position, padding included as the op counts it.
    const double uses = static_cast<double>(cost.macs) / static_cast<double>(cost.weights);
    EXPECT_NEAR(cost.ebops, want * 9 * uses + 4.0 * outputs * size * size, 1e-6 * cost.ebops)
        << groups;
  }
}

TEST(Products, NumbersPerChannelInAConvolution) {
  Graph graph = convolution(1);
  const List widths{Value(3), Value(5), Value(4), Value(6)};
  const List fracs{Value(1), Value(2), Value(0), Value(3)};
  PassContext context;
  run_pass(graph, "quantize",
           Dict{{"conv2d", Dict{{"config", Dict{{"name", "integer"},
                                                {"data_in_width", widths},
                                                {"data_in_frac_width", fracs},
                                                {"data_in_granularity", "row"},
                                                {"weight_width", 4},
                                                {"weight_frac_width", 3},
                                                {"bias_width", 6},
                                                {"bias_frac_width", 4}}}}}},
           context);
  EXPECT_EQ(graph.modules().at("conv").quantization.find("data_in")->config["axis"], Value(1));
  const Tensor x = images(5);
  const std::vector<Array> wanted = evaluate(graph, {Array::from(x)});
  const Tensor got = run(graph, {x})[0];
  for (int64_t i = 0; i < got.numel(); ++i)
    ASSERT_EQ(got.item(i), wanted[0].data[static_cast<size_t>(i)]) << i;
}

}  // namespace
}  // namespace mase::products_test
