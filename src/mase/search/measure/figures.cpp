// SPDX-License-Identifier: Apache-2.0
#include "mase/search/measure/figures.h"

#include <algorithm>

#include "mase/engine/program.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/lower/lower_graph.h"

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

Estimate design_of(const Graph& graph) {
  if (const std::vector<std::string> left = layers_in_software(graph); !left.empty())
    throw Error(
        "area_luts, latency",
        fmt::format("'{}' is not quantised: there is no hardware for all of the network", left[0]),
        "quantise every layer with weights, or leave these metrics out");
  return estimate(make_design(lower(graph).graph, {}).graph);
}

}  // namespace

FigureSet::FigureSet(std::vector<const FigureRecord*> wanted, double compare_to)
    : wanted_(std::move(wanted)), compare_to_(compare_to) {}

FigureSet FigureSet::plain(bool classification) {
  std::vector<const FigureRecord*> wanted;
  for (const FigureRecord* record : Registry<FigureRecord>::instance().all())
    if ((record->is_software() || record->needs == FigureNeeds::costs) &&
        (classification || record->for_numbers))
      wanted.push_back(record);
  return {std::move(wanted), 32};
}

bool FigureSet::needs(FigureNeeds need) const {
  return std::any_of(wanted_.begin(), wanted_.end(),
                     [&](const FigureRecord* record) { return record->needs == need; });
}

Dict FigureSet::software(const Score& score) const {
  Measured known;
  known.score = &score;
  Dict figures;
  for (const FigureRecord* record : wanted_)
    if (record->is_software()) figures.add(record->name, record->value(known));
  return figures;
}

Dict FigureSet::others(Measured known) const {
  known.compare_to = compare_to_;
  if (known.cost) known.total = known.cost->total();
  Dict figures;
  for (const FigureRecord* record : wanted_)
    if (!record->is_software()) figures.add(record->name, record->value(known));
  return figures;
}

Dict FigureSet::hardware(const Graph& network, const NetworkCost* cost) const {
  Measured known;
  known.network = &network;
  known.parameters = count_parameters(network);
  std::optional<NetworkCost> found;
  if (!cost && needs(FigureNeeds::costs)) found = network_cost(network, 1);
  known.cost = cost ? cost : found ? &*found : nullptr;
  std::optional<Estimate> design;
  if (needs(FigureNeeds::design)) design = design_of(network);
  known.design = design ? &*design : nullptr;
  return others(known);
}

Dict FigureSet::hardware(const NetworkCost& cost, const ParameterCounts& parameters) const {
  Measured known;
  known.cost = &cost;
  known.parameters = parameters;
  return others(known);
}

Split first_rows(const Split& split, int64_t rows) {
  return {cut(split.x, rows), cut(split.labels, rows), cut(split.targets, rows), split.bytes};
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
