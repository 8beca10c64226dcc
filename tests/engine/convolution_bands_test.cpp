// SPDX-License-Identifier: Apache-2.0
// Convolutions one behind the other, row by row: the kernel of a row of windows against its plain
// twin, and whole blocks against the same convolutions one by one, bit for bit, with every
// instruction set, any number of threads, smaller batches, and values that are not finite.
#include <bit>
#include <cmath>
#include <limits>

#include "engine/against_reference.h"
#include "engine/instruction_sets.h"
#include "engine/layers.h"
#include "mase/engine/kernels/depthwise.h"

namespace mase::convolution_bands_test {
namespace {

float hostile_number(Random& random) {
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::denorm_min(),
                       -0.0f,
                       1e30f};
  return random.below(60) == 0 ? odd[random.below(6)] : static_cast<float>(random.uniform(-1, 1));
}

bool same_number(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST(ConvolutionBands, RowsOfWindowsMatchTheReference) {
  with_every_instruction_set([] {
    Random random(21, "rows");
    for (int round = 0; round < 300; ++round) {
      const auto drawn = [&](int64_t least, int64_t most) {
        return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
      };
      const int64_t kernel = drawn(1, 5), dilation = drawn(1, 2), stride = drawn(1, 3);
      const int64_t before = drawn(0, 6), n = drawn(1, 20), height = drawn(1, 5);
      kernels::WindowAxis width{kernel, stride, before, dilation, drawn(1, 30), drawn(1, 20), {}};
      const std::vector<kernels::TapRun> runs = kernels::tap_runs(width);
      width.runs = runs;
      const kernels::WindowAxis rows{height, 1, 0, 1, height, 1, {}};
      const int64_t begin = drawn(0, height), end = drawn(begin, height), channels = drawn(1, 4);
      const int64_t x_stride = width.size * n + drawn(0, 3);
      const int64_t y_stride = width.result * n + drawn(0, 3);
      std::vector<std::vector<float>> memory;  // of each row by itself
      std::vector<const float*> pointers;
      for (int64_t tap = begin; tap < end; ++tap) {
        memory.emplace_back();
        for (int64_t i = 0; i < (channels - 1) * x_stride + width.size * n; ++i)
          memory.back().push_back(hostile_number(random));
      }
      for (const std::vector<float>& row : memory) pointers.push_back(row.data());
      std::vector<float> w, bias;
      for (int64_t i = 0; i < channels * height * kernel; ++i)
        w.push_back(static_cast<float>(random.uniform(-1, 1)));
      for (int64_t c = 0; c < channels; ++c) bias.push_back(hostile_number(random));
      const bool limited = drawn(0, 1) == 1;
      const kernels::DepthwiseRows shape{{rows, width, n},
                                         {0, 1, begin, end},
                                         pointers.data(),
                                         channels,
                                         x_stride,
                                         y_stride,
                                         limited ? 0.0f : -INFINITY,
                                         limited ? 0.5f : INFINITY};
      std::vector<float> fast(static_cast<size_t>(channels * y_stride), 7.0f), plain = fast;
      const float* own = drawn(0, 1) == 1 ? bias.data() : nullptr;
      kernels::depthwise_row(shape, w.data(), own, fast.data());
      kernels::reference::depthwise_row(shape, w.data(), own, plain.data());
      for (size_t i = 0; i < fast.size(); ++i) {
        if (std::isfinite(plain[i])) {
          ASSERT_NEAR(fast[i], plain[i], 2e-5 + 1e-5 * std::abs(plain[i])) << round << ", " << i;
        } else {
          ASSERT_TRUE(same_number(fast[i], plain[i]))
              << round << ", " << i << ": " << fast[i] << " for " << plain[i];
        }
      }
    }
  });
}

struct Block {
  int64_t in, height, width, wide, out;  // channels, and positions
  int64_t first;                         // taps of the first convolution, 0: there is none
  int64_t first_stride, kernel, stride, padding, dilation;
  bool sum;  // the input is added
  int64_t batch;
};

struct Network {
  Graph graph;
  std::vector<NodeId> between;  // what the convolutions hand on
};

Network network_of(const Block& b) {
  Network made;
  Graph& graph = made.graph;
  graph.name = "block";
  const auto module = [&](const char* op, const Dict& attributes, NodeId x) {
    return add_layer(graph, op, attributes, x);
  };
  const auto convolution = [&](NodeId x, int64_t out, int64_t groups, int64_t kernel,
                               int64_t stride, int64_t padding, int64_t dilation) {
    const Dict options{{"out_channels", out}, {"kernel_size", kernel},  {"stride", stride},
                       {"padding", padding},  {"dilation", dilation},   {"groups", groups},
                       {"bias", groups > 1},  {"padding_mode", "zeros"}};
    return module("batch_norm2d", {}, module("conv2d", options, x));
  };
  NodeId last = graph.add_placeholder("x", {b.in, b.height, b.width});
  if (b.sum) last = convolution(last, b.in, 1, 1, 1, 0, 1);  // so that both lie alike
  const NodeId x = last;
  if (b.first > 0) {
    last =
        module("relu6", {}, convolution(last, b.wide, 1, b.first, b.first_stride, b.first / 2, 1));
    made.between.push_back(last);
  }
  last = module("relu6", {},
                convolution(last, b.wide, b.wide, b.kernel, b.stride, b.padding, b.dilation));
  made.between.push_back(last);
  last = convolution(last, b.out, 1, 1, 1, 0, 1);
  if (b.sum) last = graph.call_function("add", {Argument::node(x), Argument::node(last)});
  graph.add_output({last});
  return made;
}

constexpr Block blocks[] = {
    {6, 40, 61, 48, 6, 1, 1, 3, 1, 1, 1, true, 11},    // as MobileNet's, several tiles
    {6, 43, 56, 50, 7, 1, 1, 3, 2, 1, 1, false, 8},    // with steps
    {3, 80, 90, 40, 5, 3, 2, 3, 1, 1, 1, false, 16},   // a first one with taps and steps
    {48, 40, 50, 48, 48, 0, 0, 3, 1, 1, 1, true, 12},  // without a first one
    {5, 30, 200, 31, 4, 1, 1, 5, 1, 4, 2, false, 7},   // windows that reach far over the edges
    {5, 60, 50, 70, 4, 1, 2, 2, 3, 0, 1, false, 20},   // rows that no window meets
    {4, 3, 700, 33, 4, 1, 1, 7, 1, 5, 1, false, 18},   // a low image
};

std::vector<float> result_of(const Graph& graph, CompileOptions options, const Sample& sample,
                             int64_t rows, const char* has, const char* has_not) {
  Program program = Program::compile(graph, options);
  const std::string steps = program.dump();
  EXPECT_NE(steps.find(has), std::string::npos) << steps;
  EXPECT_EQ(steps.find(has_not), std::string::npos) << steps;
  program.forward(sample.batch(rows));
  const int64_t width = element_count(program.output_shape(0)) / options.batch_size;
  std::vector<float> result(static_cast<size_t>(width * options.batch_size));
  program.read_output(0, result.data());
  result.resize(static_cast<size_t>(width * rows));
  return result;
}

TEST(ConvolutionBands, HaveTheBitsOfConvolutionsOneByOne) {
  with_every_instruction_set([] {
    for (size_t i = 0; i < std::size(blocks); ++i) {
      const Block& block = blocks[i];
      const Network network = network_of(block);
      Sample sample(network.graph, block.batch);
      Random random(4, "hostile");
      for (int64_t k = 0; k < sample.x.numel(); k += 1 + static_cast<int64_t>(random.below(5000)))
        sample.x.mutable_data<float>()[k] = hostile_number(random);
      for (const int64_t rows : {block.batch, block.batch / 2 + 1, int64_t{1}}) {
        CompileOptions options;
        options.batch_size = block.batch;
        options.keep = network.between;
        const std::vector<float> wanted =
            result_of(network.graph, options, sample, rows, "depthwise", "convolution_bands");
        options.keep.clear();
        for (const int threads : {1, 2, 3}) {
          options.threads = threads;
          const std::vector<float> got =
              result_of(network.graph, options, sample, rows,
                        block.sum ? "convolution_bands+add" : "convolution_bands", "depthwise");
          ASSERT_EQ(got.size(), wanted.size());
          for (size_t k = 0; k < got.size(); ++k)
            ASSERT_TRUE(same_number(got[k], wanted[k]))
                << "block " << i << ", " << rows << " rows, " << threads << " threads, value " << k
                << ": " << got[k] << " for " << wanted[k];
        }
      }
    }
  });
}

TEST(ConvolutionBands, MatchTheOps) {
  expect_inference(network_of(blocks[0]).graph, blocks[0].batch, "block");
}

TEST(ConvolutionBands, LeaveSmallOnesAndTrainingAlone) {
  Block small = blocks[0];
  small.height = small.width = 9;
  CompileOptions options;
  options.batch_size = small.batch;
  EXPECT_EQ(Program::compile(network_of(small).graph, options).dump().find("bands"),
            std::string::npos);
  options.training = true;
  EXPECT_EQ(Program::compile(network_of(blocks[0]).graph, options).dump().find("bands"),
            std::string::npos);
}

}  // namespace
}  // namespace mase::convolution_bands_test
