// SPDX-License-Identifier: Apache-2.0
#include "mase/search/figures.h"

#include <algorithm>

#include "mase/engine/program.h"
#include "mase/hardware/design.h"
#include "mase/hardware/lower_graph.h"

namespace mase::search {
namespace {

Tensor cut(const Tensor& tensor, int64_t rows) {
  if (tensor.numel() == 0 || tensor.shape()[0] <= rows) return tensor;
  Shape shape = tensor.shape();
  shape[0] = rows;
  const auto count = static_cast<size_t>(element_count(shape));
  if (tensor.dtype() == DType::i32)
    return Tensor::of<int32_t>(shape, tensor.values<int32_t>().first(count));
  if (tensor.dtype() == DType::u8)
    return Tensor::of<uint8_t>(shape, tensor.values<uint8_t>().first(count));
  return Tensor::of<float>(shape, tensor.values<float>().first(count));
}

}  // namespace

std::vector<std::string> software_figures(bool classification) {
  return classification ? std::vector<std::string>{"accuracy", "loss"}
                        : std::vector<std::string>{"loss"};
}

std::vector<std::string> hardware_figures() {
  std::vector<std::string> names = {
      "average_bitwidth", "memory_density",      "average_activation_bitwidth",
      "parameters",       "unpruned_parameters", "area_luts",
      "latency"};
  for (const CostQuantity& quantity : cost_quantities()) names.emplace_back(quantity.key);
  return names;
}

Split first_rows(const Split& split, int64_t rows) {
  return {cut(split.x, rows), cut(split.labels, rows), cut(split.targets, rows), split.bytes};
}

Dict software_of(const Score& score, bool classification) {
  Dict figures{{"loss", score.loss()}};
  if (classification) figures.set("accuracy", score.accuracy());
  return figures;
}

Dict hardware_of(const NetworkCost& cost, const ParameterCounts& parameters,
                 const FigureOptions& options) {
  const double bits = cost.average_weight_bits();
  Dict figures{{"average_bitwidth", bits},
               {"memory_density", bits > 0 ? options.compare_to / bits : 0.0},
               {"average_activation_bitwidth", cost.average_activation_bits()},
               {"parameters", static_cast<double>(parameters.all)},
               {"unpruned_parameters", static_cast<double>(parameters.all - parameters.pruned)}};
  const LayerCost total = cost.total();
  for (const CostQuantity& quantity : cost_quantities())
    figures.add(quantity.key, quantity.of(total));
  return figures;
}

Dict hardware_of(const Graph& graph, const FigureOptions& options) {
  Dict figures = hardware_of(network_cost(graph, 1), count_parameters(graph), options);
  if (options.design) {
    if (const std::vector<std::string> left = layers_in_software(graph); !left.empty())
      throw Error("area_luts, latency",
                  fmt::format("'{}' is not quantised: there is no hardware for all of the network",
                              left[0]),
                  "quantise every layer with weights, or leave these metrics out");
    const Estimate design = estimate(make_design(lower(graph).graph, {}).graph);
    figures.set("area_luts", design.luts);
    figures.set("latency", design.delay_ns);
  }
  return figures;
}

Score score_network(const Graph& graph, const Dataset& dataset, const Split& split, int64_t rows,
                    int64_t batch_size) {
  CompileOptions options;
  options.batch_size = std::min(batch_size, std::max<int64_t>(1, rows));
  options.loss = loss_for(dataset);
  Program program = Program::compile(graph, options);
  return score_rows(program, split, 0, std::min(rows, split.rows()));
}

}  // namespace mase::search
