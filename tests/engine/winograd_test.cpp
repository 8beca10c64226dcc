// SPDX-License-Identifier: Apache-2.0
// Winograd's transforms against their plain twins, and whole convolutions, their gradients and what
// is fused into them against the ops' reference code, on sizes that leave tiles half empty.
#include "mase/engine/kernels/winograd.h"

#include "engine/against_reference.h"
#include "engine/layers.h"
#include "mase/engine/kernels/shifted.h"
#include "mase/engine/kernels/winograd_rows.h"

namespace mase::winograd_test {
namespace {

std::vector<float> numbers(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-5) << i;
}

TEST(Winograd, TransformsMatchTheirReferences) {
  Random random(9, "winograd");
  for (const int64_t lanes : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100})
    for (const int64_t rows : {1, 3}) {
      const int64_t pitch = lanes + 5, step = rows * lanes + 3;
      int64_t offsets[16];
      for (int64_t& offset : offsets) offset = static_cast<int64_t>(random.below(50));
      const std::vector<float> x = numbers(random, 50 + rows * pitch);
      std::vector<float> fast(static_cast<size_t>(16 * step), 7.0f), plain = fast;
      const kernels::WinogradTiles tiles{offsets, pitch, rows, lanes, step};
      kernels::winograd_image(tiles, x.data(), fast.data());
      kernels::reference::winograd_image(tiles, x.data(), plain.data());
      expect_near(fast, plain);
      kernels::winograd_result_gradient(tiles, x.data(), fast.data());
      kernels::reference::winograd_result_gradient(tiles, x.data(), plain.data());
      expect_near(fast, plain);
    }
  for (const int64_t n : {1, 2, 5, 8, 16, 32, 40})
    for (const int64_t columns : {1, 3, 9, 20}) {
      const int64_t step = columns * n + 2, row = 2 * columns * n + 1;
      const std::vector<float> places = numbers(random, 16 * step);
      std::vector<float> fast(static_cast<size_t>(2 * row), 7.0f), plain = fast;
      kernels::winograd_result(places.data(), step, columns, n, 0.25f, fast.data(), row);
      kernels::reference::winograd_result(places.data(), step, columns, n, 0.25f, plain.data(),
                                          row);
      expect_near(fast, plain);
    }
  for (const int64_t count : {1, 5, 16, 17, 50}) {
    const std::vector<float> w = numbers(random, 9 * count), du = numbers(random, 16 * count);
    std::vector<float> fast(du.size()), plain = fast;
    kernels::winograd_weights(w.data(), count, fast.data());
    kernels::reference::winograd_weights(w.data(), count, plain.data());
    expect_near(fast, plain);
    for (const bool accumulate : {false, true}) {
      std::vector<float> dw = w, wanted = w;
      kernels::winograd_weights_gradient(du.data(), count, dw.data(), accumulate);
      kernels::reference::winograd_weights_gradient(du.data(), count, wanted.data(), accumulate);
      expect_near(dw, wanted);
    }
  }
}

TEST(Winograd, RowTransformsMatchTheirReferences) {
  Random random(10, "rows");
  for (const int64_t n : {1, 3, 16, 20, 64})
    for (const int64_t columns : {1, 4, 6, 12, 14}) {
      const int64_t tiles = (columns + 3) / 4, rows = 3, available = columns + 4;
      const kernels::RowTiles shape{rows, tiles, n, available, available * n, rows * tiles * n + 5};
      const std::vector<float> x = numbers(random, rows * available * n);
      std::vector<float> fast(static_cast<size_t>(8 * shape.step), 7.0f), plain = fast;
      kernels::winograd_rows_image(shape, x.data(), fast.data());
      kernels::reference::winograd_rows_image(shape, x.data(), plain.data());
      expect_near(fast, plain);
      for (const bool add : {false, true}) {
        const std::vector<float> sums = numbers(random, 8 * tiles * n),
                                 added = numbers(random, columns * n);
        const kernels::Finish finish{-0.5f, 1.5f, add ? added.data() : nullptr};
        std::vector<float> y(static_cast<size_t>(columns * n + 1), 7.0f), wanted = y;
        kernels::winograd_rows_result(sums.data(), tiles * n, columns, n, 0.25f, y.data(), finish);
        kernels::reference::winograd_rows_result(sums.data(), tiles * n, columns, n, 0.25f,
                                                 wanted.data(), finish);
        expect_near(y, wanted);
      }
    }
}

// Two convolutions with a sum and limits behind them, then a head of three classes.
Graph network(int64_t channels, int64_t outputs, int64_t height, int64_t width, int64_t padding,
              const std::string& mode, bool grows, int64_t kernel = 3) {
  Graph graph;
  graph.name = "convolutions";
  const auto module = [&](const char* op, const Dict& attributes, NodeId x) {
    return add_layer(graph, op, attributes, x);
  };
  const NodeId x = graph.add_placeholder("x", {channels, height, width});
  const Dict options{
      {"out_channels", outputs}, {"kernel_size", kernel}, {"stride", 1},  {"padding", padding},
      {"dilation", 1},           {"groups", 1},           {"bias", true}, {"padding_mode", mode}};
  NodeId last = module("relu", {}, module("batch_norm2d", {}, module("conv2d", options, x)));
  if (grows) {
    Dict same = options;
    same["padding"] = kernel / 2;
    const NodeId sum = graph.call_function(
        "add", {Argument::node(last), Argument::node(module("conv2d", same, last))});
    last = module("relu6", {}, sum);
  }
  last = module("adaptive_avg_pool2d", {{"output_size", 1}}, last);
  last = graph.call_function("flatten", {Argument::node(last), Argument::literal(1)});
  graph.add_output({module("linear", {{"out_features", 3}}, last)});
  return graph;
}

TEST(Winograd, ConvolutionsMatchTheReference) {
  struct Case {
    int64_t channels, outputs, height, width, padding, batch;
    const char* mode;
  };
  for (const Case& c : {Case{16, 17, 8, 8, 1, 5, "zeros"}, Case{19, 16, 7, 13, 0, 3, "zeros"},
                        Case{16, 16, 3, 4, 2, 40, "zeros"}, Case{16, 20, 15, 14, 1, 1, "reflect"},
                        Case{17, 16, 5, 6, 1, 16, "circular"}}) {
    const Graph graph = network(c.channels, c.outputs, c.height, c.width, c.padding, c.mode, true);
    const std::string what = fmt::format("{}x{}", c.height, c.width);
    expect_inference(graph, c.batch, what);
    expect_gradients(graph, c.batch, (c.batch + 1) / 2, what);
    CompileOptions options;
    options.batch_size = c.batch;
    const std::string steps = Program::compile(graph, options).dump();
    EXPECT_NE(steps.find("convolution+relu, winograd"), std::string::npos) << steps;
    EXPECT_NE(steps.find("convolution+add+clamp, winograd"), std::string::npos) << steps;
  }
}

TEST(Winograd, RowsOfFiveTapsMatchTheReference) {
  struct Case {
    int64_t channels, outputs, height, width, padding, batch;
    const char* mode;
  };
  for (const Case& c : {Case{6, 16, 14, 14, 0, 16, "zeros"}, Case{3, 9, 6, 21, 2, 20, "zeros"},
                        Case{8, 8, 7, 12, 2, 33, "reflect"}}) {
    const Graph graph =
        network(c.channels, c.outputs, c.height, c.width, c.padding, c.mode, true, 5);
    const std::string what = fmt::format("{}x{}", c.height, c.width);
    expect_inference(graph, c.batch, what);
    expect_gradients(graph, c.batch, (c.batch + 1) / 2, what);
    CompileOptions options;
    options.batch_size = c.batch;
    const std::string steps = Program::compile(graph, options).dump();
    EXPECT_NE(steps.find("convolution+relu, winograd rows"), std::string::npos) << steps;
    EXPECT_NE(steps.find("convolution+add+clamp, winograd rows"), std::string::npos) << steps;
  }
}

class WinogradThreads : public testing::TestWithParam<int64_t> {};

TEST_P(WinogradThreads, DoNotChangeBits) {
  const Graph graph = network(24, 40, 12, 12, 1, "zeros", true, GetParam());
  const Sample sample(graph, 16);
  std::vector<std::vector<float>> gradients, results;
  for (const int threads : {1, 2, 3}) {
    CompileOptions options;
    options.batch_size = 16;
    options.threads = threads;
    Program program = Program::compile(graph, options);
    program.forward(sample.batch(16));
    results.emplace_back(16 * 3);
    program.read_output(0, results.back().data());
    options.training = true;
    options.loss = make_loss("cross_entropy");
    Program training = Program::compile(graph, options);
    training.forward_backward(sample.batch(16));
    const auto memory = training.gradient_memory();
    gradients.emplace_back(memory.begin(), memory.end());
  }
  for (const auto& other : gradients) EXPECT_EQ(gradients[0], other);
  for (const auto& other : results) EXPECT_EQ(results[0], other);
}

INSTANTIATE_TEST_SUITE_P(Kernels, WinogradThreads, testing::Values(3, 5));

}  // namespace
}  // namespace mase::winograd_test
