// SPDX-License-Identifier: Apache-2.0
// Convolutions of each channel with itself: the kernels against their plain twins, on windows that
// reach over every edge or miss the image, on values that are not finite and in memory that nothing
// else may be written to; and in a network with the batch norm and the limits behind them.
#include "mase/engine/kernels/depthwise.h"

#include <limits>

#include "engine/against_reference.h"
#include "engine/instruction_sets.h"
#include "engine/layers.h"

namespace mase::depthwise_test {
namespace {

struct Axis {
  int64_t kernel, stride, before, after, dilation, size;
};

struct Case {
  kernels::Windowing windows;
  kernels::PlaneWindows shape;

  Case(const Axis& height, const Axis& width, int64_t n)
      : windows(axis(height), axis(width)), shape(windows.of(n)) {}

  int64_t images() const { return shape.height.size * shape.width.size * shape.n; }
  int64_t results() const { return shape.height.result * shape.width.result * shape.n; }

 private:
  static kernels::WindowAxis axis(const Axis& a) {
    const int64_t reach = a.dilation * (a.kernel - 1) + 1;
    return {a.kernel,   a.stride, a.before,
            a.dilation, a.size,   (a.size + a.before + a.after - reach) / a.stride + 1};
  }
};

std::vector<float> numbers(Random& random, int64_t count, bool hostile) {
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::denorm_min(),
                       -0.0f,
                       1e30f};
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values)
    value = hostile && random.below(40) == 0 ? odd[random.below(6)]
                                             : static_cast<float>(random.uniform(-1, 1));
  return values;
}

void expect_same(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(wanted[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    } else if (std::isinf(wanted[i])) {
      ASSERT_EQ(got[i], wanted[i]) << i;
    } else {
      ASSERT_NEAR(got[i], wanted[i], 2e-5 + 1e-5 * std::abs(wanted[i])) << i;
    }
  }
}

void each_case(const std::function<void(const Case&, Random&)>& check) {
  Random random(11, "depthwise");
  const Axis axes[] = {{3, 1, 1, 1, 1, 7}, {3, 2, 1, 1, 1, 8},  {3, 2, 0, 1, 1, 9},
                       {1, 1, 0, 0, 1, 5}, {5, 1, 2, 2, 1, 6},  {3, 1, 2, 2, 2, 11},
                       {2, 3, 0, 0, 1, 8}, {4, 1, 3, 0, 3, 10}, {7, 1, 6, 6, 1, 2},
                       {3, 3, 5, 5, 1, 1}};
  with_every_instruction_set([&] {
    for (const Axis& height : axes)
      for (const Axis& width : axes)
        for (const int64_t n : {1, 3, 8, 16, 20, 33}) check(Case(height, width, n), random);
  });
}

TEST(Depthwise, SumsMatchTheReference) {
  each_case([](const Case& c, Random& random) {
    for (const bool hostile : {false, true}) {
      const std::vector<float> x = numbers(random, c.images(), hostile),
                               w = numbers(random, c.shape.taps(), false);
      constexpr size_t room = 32;  // behind the results
      std::vector<float> fast = numbers(random, c.results(), false);
      fast.resize(fast.size() + room, 7.0f);
      std::vector<float> plain = fast;
      for (const auto& [low, high] : {std::pair{-INFINITY, INFINITY}, std::pair{0.0f, 0.5f}})
        for (const bool add : {false, true}) {
          const std::vector<float> added = fast;
          const kernels::Finish finish{low, high, add ? added.data() : nullptr};
          kernels::depthwise(c.shape, w.data(), 0.25f, x.data(), fast.data(), finish);
          kernels::reference::depthwise(c.shape, w.data(), 0.25f, x.data(), plain.data(), finish);
          expect_same(fast, plain);
          fast = plain;
        }
      // Added to itself, as gradients are.
      const std::vector<float> before = fast;
      kernels::depthwise(c.shape, w.data(), 0, x.data(), fast.data(), {.add = fast.data()});
      kernels::reference::depthwise(c.shape, w.data(), 0, x.data(), plain.data(),
                                    {.add = before.data()});
      expect_same(fast, plain);
    }
  });
}

TEST(Depthwise, GradientsMatchTheReference) {
  each_case([](const Case& c, Random& random) {
    const std::vector<float> x = numbers(random, c.images(), false),
                             g = numbers(random, c.results(), false);
    for (const bool accumulate : {false, true}) {
      std::vector<float> fast = numbers(random, c.shape.taps(), false), plain = fast;
      kernels::depthwise_gradient(c.shape, g.data(), x.data(), fast.data(), accumulate);
      kernels::reference::depthwise_gradient(c.shape, g.data(), x.data(), plain.data(), accumulate);
      expect_same(fast, plain);
    }
  });
}

// One block of a MobileNet: each channel by itself, batch norm and relu6, then a head.
TEST(Depthwise, IsTakenByTheLayersOfANetwork) {
  for (const int64_t stride : {1, 2}) {
    Graph graph;
    graph.name = "block";
    const auto module = [&](const char* op, const Dict& attributes, NodeId x) {
      return add_layer(graph, op, attributes, x);
    };
    NodeId last = graph.add_placeholder("x", {6, 9, 11});
    last = module("conv2d",
                  {{"out_channels", 6},
                   {"kernel_size", 3},
                   {"stride", stride},
                   {"padding", 1},
                   {"dilation", 1},
                   {"groups", 6},
                   {"bias", false},
                   {"padding_mode", "zeros"}},
                  last);
    last = module("relu6", {}, module("batch_norm2d", {}, last));
    last = module("adaptive_avg_pool2d", {{"output_size", 1}}, last);
    last = graph.call_function("flatten", {Argument::node(last), Argument::literal(1)});
    graph.add_output({module("linear", {{"out_features", 3}}, last)});
    expect_inference(graph, 16, "block");
    expect_gradients(graph, 16, 9, "block");
    CompileOptions options;
    options.batch_size = 16;
    const std::string steps = Program::compile(graph, options).dump();
    EXPECT_NE(steps.find("convolution+clamp, depthwise"), std::string::npos) << steps;
  }
}

}  // namespace
}  // namespace mase::depthwise_test
