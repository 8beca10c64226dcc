// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/cost/ebops.h"

#include <algorithm>
#include <vector>

#include "mase/formats/number_type.h"

namespace mase {
namespace {

std::vector<int> bits_of_values(const Module& module, const std::string& path,
                                const std::string& operand, const Shape& shape) {
  const Quantizer* const quantizer = module.quantization.find(operand);
  const std::optional<Fixed> type = quantizer && quantizer->type && !quantizer->learned
                                        ? as_fixed(*quantizer->type, false)
                                        : std::nullopt;
  if (!type)
    throw Error(path,
                fmt::format("its {} is not in fixed point, which bit operations count", operand),
                "quantise it to integer");
  std::vector<int> bits(static_cast<size_t>(element_count(shape)));
  const auto counted = [](const Fixed& one) {
    const bool sign = one.is_signed && one.overflow != Overflow::saturate;
    return std::max(0, one.width - (sign ? 1 : 0));
  };
  if (group_count(*type) == 1) {
    std::fill(bits.begin(), bits.end(), counted(fixed_at(*type, 0)));
    return bits;
  }
  const Grouping groups = grouping(shape, quantizer->type->granularity);
  for (int64_t g = 0; g < groups.groups; ++g)
    groups.for_each(g,
                    [&](int64_t i) { bits[static_cast<size_t>(i)] = counted(fixed_at(*type, g)); });
  return bits;
}

}  // namespace

double dense_ebops(std::span<const int> inputs, std::span<const int> weights,
                   std::span<const int> biases) {
  double total = 0;
  for (size_t k = 0; k < weights.size(); ++k)
    total += static_cast<double>(inputs[k % inputs.size()]) * weights[k];
  for (const int bits : biases) total += bits;
  return total;
}

double ebops(const Graph& graph) {
  double total = 0;
  for (const auto& [path, module] : graph.modules()) {
    if (module.op != "linear") continue;
    const Shape weight = module.find("weight")->shape();
    const std::vector<int> inputs = bits_of_values(module, path, "data_in", {1, weight[1]}),
                           weights = bits_of_values(module, path, "weight", weight);
    std::vector<int> biases;
    if (const Tensor* bias = module.find("bias"))
      biases = bits_of_values(module, path, "bias", bias->shape());
    total += dense_ebops(inputs, weights, biases);
  }
  return total;
}

}  // namespace mase
