// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/stream/products.h"

#include <algorithm>

#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/optimize.h"
#include "mase/hardware/optimize/small_sums.h"

namespace mase {
namespace {

std::vector<IntegerId> element_inputs(IntegerBuilder& builder, const StreamStage& stage,
                                      const IntegerRange& range) {
  std::vector<IntegerId> inputs;
  for (int i = 0; i < stage.inputs(); ++i)
    inputs.push_back(builder.input(range, 0, fmt::format("x_{}", i)));
  return inputs;
}

// Sums that the optimiser builds of shared additions.
IntegerGraph as_additions(const StreamStage& stage, const IntegerRange& range,
                          const std::vector<int64_t>& constants) {
  IntegerBuilder builder(stage.name + "_sums");
  builder.add_layer(stage.name);
  const std::vector<IntegerId> inputs = element_inputs(builder, stage, range);
  for (int o = 0; o < stage.outputs(); ++o) {
    std::vector<IntegerId> terms;
    std::vector<int64_t> numbers = {0, constants[static_cast<size_t>(o)]};
    for (size_t i = 0; i < inputs.size(); ++i)
      if (const int64_t weight = stage.weights[i][static_cast<size_t>(o)]; weight != 0) {
        terms.push_back(inputs[i]);
        numbers.push_back(weight);
      }
    builder.output(terms.empty()
                       ? builder.constant(numbers[1], 0)
                       : builder.node("linear_sum", std::move(terms), std::move(numbers)));
  }
  return optimize(builder.finish(), {.effort = 0, .delay_weight = 8.0, .tables = false}).graph;
}

// Six bits are a table each, and the tables' results are added in a tree.
IntegerGraph as_tables(const StreamStage& stage, const IntegerRange& range) {
  IntegerBuilder builder(stage.name + "_sums");
  builder.add_layer(stage.name);
  const std::vector<IntegerId> inputs = element_inputs(builder, stage, range);
  const size_t together = static_cast<size_t>(small_sum_bits / range.width());
  for (int o = 0; o < stage.outputs(); ++o) {
    std::vector<IntegerId> parts, group;
    std::vector<int64_t> numbers = {0};
    const auto finish = [&] {
      if (!group.empty())
        parts.push_back(builder.node("small_sum", std::move(group), std::move(numbers)));
      group = {};
      numbers = {0};
    };
    for (size_t i = 0; i < inputs.size(); ++i)
      if (const int64_t weight = stage.weights[i][static_cast<size_t>(o)]; weight != 0) {
        group.push_back(inputs[i]);
        numbers.push_back(weight);
        if (group.size() == together) finish();
      }
    finish();
    while (parts.size() > 1) {
      std::vector<IntegerId> next;
      for (size_t k = 0; k + 1 < parts.size(); k += 2)
        next.push_back(builder.add(parts[k], 0, parts[k + 1], 0));
      if (parts.size() % 2 == 1) next.push_back(parts.back());
      parts = std::move(next);
    }
    builder.output(parts.empty() ? builder.constant(0, 0) : parts[0]);
  }
  return merge_equal(builder.finish());
}

// A choice of one of so many bits, and an accumulator with its start.
double digit_luts(const StreamStage& stage, int digits, int digit_bits) {
  if (digits == 1) return 0;
  const double choice = std::max(1.0, static_cast<double>(digits) / 4);
  return choice * stage.inputs() * digit_bits +
         static_cast<double>(stage.outputs()) * stage.sum_width();
}

}  // namespace

WindowProducts window_products(const StreamStage& stage, int64_t cycles) {
  const int width = stage.in.width;
  WindowProducts best;
  best.graph = as_additions(stage, stage.in.range(), stage.constants);
  best.digit_bits = width;
  best.luts = estimate(best.graph).luts;
  const int bits = static_cast<int>((width + cycles - 1) / std::max<int64_t>(1, cycles));
  if (bits >= width) return best;
  const int digits = (width + bits - 1) / bits;
  const IntegerRange range{0, (int64_t{1} << bits) - 1};
  std::vector<int64_t> constants = stage.constants;
  if (stage.in.is_signed)
    for (size_t o = 0; o < constants.size(); ++o)
      for (const auto& weights : stage.weights)
        constants[o] =
            checked_add(constants[o], checked_multiply(-(int64_t{1} << (width - 1)), weights[o]));
  const auto consider = [&](IntegerGraph graph, bool tables) {
    const double luts = estimate(graph).luts + digit_luts(stage, digits, bits);
    if (luts >= best.luts) return;
    best = {std::move(graph), digits, bits, stage.in.is_signed, constants, luts, tables};
  };
  consider(as_additions(stage, range, std::vector<int64_t>(constants.size(), 0)), false);
  if (bits <= small_sum_bits) consider(as_tables(stage, range), true);
  return best;
}

}  // namespace mase
