// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/cost/quick_estimate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "mase/formats/few_digits.h"
#include "mase/hardware/cost/estimate.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase {
namespace {

constexpr int64_t digits_from = 2500;  // below, the adder graph itself is built in milliseconds
constexpr double quick_delay_weight = 8;

// Fitted to the adder graphs of 66 products (docs/hardware.md): bits of carry chains and adders as
// products of powers of counts.
constexpr double levels_per_doubling = 3.87;  // of the most digits that one sum has

struct ProductCounts {
  double digits = 0, sums = 0, weights = 0;
  double unshared_bits = 0;  // digits less one, times the width, of every sum
  double most_digits = 0;    // of one sum
  std::set<IntegerId> inputs;
};

void count_sum(ProductCounts& counts, const LinearForm& form, int width) {
  if (form.terms.empty()) return;
  double digits = 0;
  for (const auto& [root, factor] : form.terms) {
    digits += signed_digit_count(factor);
    counts.weights += 1;
    counts.inputs.insert(root);
  }
  counts.digits += digits;
  counts.sums += 1;
  counts.unshared_bits += (digits - 1) * width;
  counts.most_digits = std::max(counts.most_digits, digits);
}

// Of every linear layer, in the graph's order of them.
std::vector<ProductCounts> counts_of(const IntegerGraph& graph) {
  std::vector<std::vector<size_t>> layers_of(graph.nodes.size());
  for (size_t k = 0; k < graph.linear.size(); ++k)
    for (const IntegerId id : graph.linear[k].outputs)
      if (id >= 0) layers_of[static_cast<size_t>(id)].push_back(k);
  std::vector<ProductCounts> counts(graph.linear.size());
  visit_linear_forms(graph, [&](size_t i, const LinearForm& form) {
    for (const size_t k : layers_of[i]) count_sum(counts[k], form, graph.nodes[i].range.width());
  });
  return counts;
}

CostShare shared_cost(const ProductCounts& c) {
  if (c.digits <= c.sums || c.unshared_bits <= 0) return {};
  const double sums = std::log(c.sums), inputs = std::log(static_cast<double>(c.inputs.size())),
               each = std::log(c.digits / c.weights);
  CostShare cost;
  const double bits =
      std::min(c.unshared_bits, std::exp(0.00258 + 0.77936 * std::log(c.unshared_bits) +
                                         0.16785 * sums + 0.12696 * inputs + 0.25228 * each));
  cost.adders =
      std::min(c.digits - c.sums, std::exp(-0.14422 + 0.74188 * std::log(c.digits - c.sums) +
                                           0.18879 * sums + 0.19339 * inputs + 0.14692 * each));
  cost.adder_luts = cost.adders * chain_luts(bits / cost.adders);
  return cost;
}

}  // namespace

Estimate quick_estimate(const IntegerGraph& lowered) {
  const std::vector<ProductCounts> products = counts_of(lowered);
  std::vector<CostShare> costs(lowered.layers.size());
  std::vector<double> levels(lowered.layers.size(), 0);
  std::vector<char> counted(lowered.layers.size(), 0);
  double digits = 0;
  for (size_t k = 0; k < products.size(); ++k) {
    const ProductCounts& counts = products[k];
    const size_t at = static_cast<size_t>(lowered.linear[k].layer);
    digits += counts.digits;
    costs[at].add(shared_cost(counts), 1);
    levels[at] += levels_per_doubling * std::log2(std::max(1.0, counts.most_digits));
    counted[at] = 1;
  }
  if (digits < static_cast<double>(digits_from)) {
    Estimate result =
        estimate(optimize(lowered, {.effort = 0, .delay_weight = quick_delay_weight}).graph);
    result.method = "the graph that the least effort gives";
    return result;
  }
  // Everything else as it is once rounding constants have joined the sums.
  const IntegerGraph merged = merge_equal(merge_rounding(lowered));
  const std::vector<int> bits = bits_read(merged);
  for (size_t i = 0; i < merged.nodes.size(); ++i) {
    const IntegerNode& node = merged.nodes[i];
    if (node.layer < 0) continue;
    const size_t at = static_cast<size_t>(node.layer);
    const bool of_product = node.op->affine && counted[at];
    if (!of_product) costs[at].add(cost_share(merged, node, bits[i]), 1);
  }
  Estimate result;
  result.method = "counts of digits and widths, not an optimised graph";
  for (const IntegerNode& node : merged.nodes)
    if (node.op->name == "compare" || node.op->name == "select" || node.op->name == "table")
      result.error = 0;
  CostShare all;
  for (size_t i = 0; i < costs.size(); ++i) {
    all.add(costs[i], 1);
    result.levels += levels[i];
    if (estimated_luts(costs[i]) > 0)
      result.layers.push_back({lowered.layers[i], estimated_luts(costs[i]), levels[i],
                               static_cast<int64_t>(std::llround(costs[i].adders))});
  }
  result.luts = estimated_luts(all);
  result.delay_ns = delay_of_levels(result.levels);
  return result;
}

}  // namespace mase
