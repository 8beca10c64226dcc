// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/saturation.h"

#include <algorithm>
#include <map>

#include "mase/base/text.h"
#include "mase/formats/measure.h"
#include "mase/ir/learned.h"
#include "mase/ir/op.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"

namespace mase {
namespace {

struct WatchedOperand {
  NodeId source;  // whose result it is
  Saturation said;
  QuantizerPtr format;
  int64_t values = 0, beyond = 0;
};

std::vector<WatchedOperand> watched_operands(const Graph& graph) {
  std::vector<WatchedOperand> watched;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Quantization& quantization = graph.quantization_of(node);
    if (!quantization.active()) continue;
    const std::vector<NodeId> sources = graph.inputs_of(id);
    for (size_t i = 0; i < sources.size(); ++i) {
      const std::string operand = operand_of_input(graph, node, i);
      const QuantizerPtr format = current_quantizer(quantization, graph.module_of(node), operand);
      // What training found cuts off on purpose.
      if (!format || format->learned || !format->lowest || !format->largest) continue;
      watched.push_back(
          {sources[i], {node.name, operand, 0, *format->lowest, *format->largest}, format});
    }
  }
  return watched;
}

}  // namespace

std::vector<Saturation> saturations(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<WatchedOperand> watched = watched_operands(graph);
  std::vector<Saturation> result;
  if (watched.empty()) return result;
  std::vector<NodeId> sources;
  for (const WatchedOperand& one : watched) sources.push_back(one.source);
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  observe_nodes(graph, inputs, sources, [&](NodeId id, const Tensor& values) {
    for (WatchedOperand& one : watched) {
      if (one.source != id) continue;
      const auto beyond = count_beyond(*one.format, values.values<float>(), values.shape());
      if (!beyond) continue;
      one.values += values.numel();
      one.beyond += *beyond;
    }
  });
  for (WatchedOperand& one : watched) {
    if (one.values == 0) continue;
    one.said.share = static_cast<double>(one.beyond) / static_cast<double>(one.values);
    result.push_back(std::move(one.said));
  }
  return result;
}

std::string saturation_text(const std::vector<Saturation>& found) {
  constexpr double worth_saying = 0.05;
  constexpr size_t shown = 3;
  std::vector<Saturation> worst;
  std::copy_if(found.begin(), found.end(), std::back_inserter(worst),
               [](const Saturation& one) { return one.share > worth_saying; });
  if (worst.empty()) return "";
  std::stable_sort(worst.begin(), worst.end(),
                   [](const Saturation& a, const Saturation& b) { return a.share > b.share; });
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(shown, worst.size()); ++i)
    texts.push_back(fmt::format("{:.0f} % of {}'s {} (its format ends at {:g} and {:g})",
                                100 * worst[i].share, worst[i].node, worst[i].operand,
                                worst[i].lowest, worst[i].largest));
  return fmt::format(
      "values are cut off: {}{}; the pass calibrate finds fraction bits that hold them",
      join(texts, ", "),
      worst.size() > shown ? fmt::format(" and {} more operands", worst.size() - shown) : "");
}

}  // namespace mase
