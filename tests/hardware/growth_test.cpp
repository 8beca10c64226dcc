// SPDX-License-Identifier: Apache-2.0
// Memory grows with the weights of a network, not with weights times inputs: a sum keeps one term
// for each weight, and nothing keeps the linear forms of partial sums.
#include <gtest/gtest.h>

#include "mase/base/random.h"
#include "mase/hardware/cost/quick_estimate.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/lower/lower_linear.h"
#include "support/counted_memory.h"

namespace mase::test::growth_test {
namespace {

constexpr size_t width = 512;

IntegerGraph square_layers(size_t count) {
  Random random(1, "growth");
  IntegerBuilder builder("square");
  std::vector<IntegerId> values;
  for (size_t i = 0; i < width; ++i)
    values.push_back(builder.input({-8, 7}, 2, fmt::format("x_{}", i)));
  for (size_t layer = 0; layer < count; ++layer) {
    builder.add_layer(fmt::format("layer_{}", layer));
    std::vector<std::vector<double>> weights(width, std::vector<double>(width));
    for (auto& row : weights)
      for (double& weight : row) weight = static_cast<double>(random.below(255)) / 128 - 1;
    for (IntegerId& sum :
         values = lower_linear(builder, values, weights, std::vector<double>(width, 0.5), "layer"))
      sum = builder.clamp(builder.round(sum, 9, IntegerRounding::half_up), 0, 15);
  }
  for (const IntegerId value : values) builder.output(value);
  return builder.finish();
}

size_t numbers_of(const IntegerGraph& graph) {
  size_t count = 0;
  for (const IntegerNode& node : graph.nodes) count += node.inputs.size() + node.numbers.size();
  return count;
}

TEST(growth, memory_is_linear_in_weights) {
  constexpr size_t layers = 2, weights = layers * width * width;
  peak_bytes = live_bytes.load();
  const size_t before = live_bytes;
  const IntegerGraph graph = square_layers(layers);
  EXPECT_LT(numbers_of(graph), 2 * weights + 16 * layers * width);
  EXPECT_GT(quick_estimate(graph).luts, 1e5);
  const Design design =
      make_design(graph, {.style = "stream", .style_options = Dict{{"cycles", 512}}});
  const EmittedFiles files = design_files(design, random_rows(graph, 16, 1), {});
  EXPECT_GT(files.at("rtl/layer_0.sv").size(), weights / layers);
  EXPECT_LT(peak_bytes - before, 1000 * weights);
}

}  // namespace
}  // namespace mase::test::growth_test
