// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/pipeline.h"

#include <algorithm>
#include <map>

#include "mase/hardware/builder.h"

namespace mase {
namespace {

double delay_of(const IntegerGraph& graph, const IntegerNode& node) {
  return node.op->delay ? node.op->delay(context_of(graph, node)) : 0;
}

// Stage of every node, as early as possible.
std::vector<int> earliest(const IntegerGraph& graph, double levels) {
  std::vector<int> stage(graph.nodes.size(), 0);
  std::vector<double> time(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    for (const IntegerId input : node.inputs)
      stage[i] = std::max(stage[i], stage[static_cast<size_t>(input)]);
    for (const IntegerId input : node.inputs)
      if (stage[static_cast<size_t>(input)] == stage[i])
        time[i] = std::max(time[i], time[static_cast<size_t>(input)]);
    const double delay = delay_of(graph, node);
    if (time[i] > 0 && time[i] + delay > levels) {
      ++stage[i];
      time[i] = 0;
    }
    time[i] += delay;
  }
  return stage;
}

// The same from the outputs backwards, all of which are in the last stage.
std::vector<int> latest(const IntegerGraph& graph, double levels, int last) {
  std::vector<int> stage(graph.nodes.size(), last);
  std::vector<double> time(graph.nodes.size(), 0);  // from its result to the stage's end
  std::vector<std::vector<size_t>> users(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const IntegerId input : graph.nodes[i].inputs)
      users[static_cast<size_t>(input)].push_back(i);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    for (const size_t user : users[i]) stage[i] = std::min(stage[i], stage[user]);
    for (const size_t user : users[i])
      if (stage[user] == stage[i])
        time[i] = std::max(time[i], time[user] + delay_of(graph, graph.nodes[user]));
    const double delay = delay_of(graph, graph.nodes[i]);
    if (time[i] > 0 && time[i] + delay > levels && !graph.nodes[i].inputs.empty()) {
      --stage[i];
      time[i] = 0;
    }
  }
  for (const IntegerId input : graph.inputs) stage[static_cast<size_t>(input)] = 0;
  return stage;
}

IntegerGraph with_registers(const IntegerGraph& graph, const std::vector<int>& stage, int last) {
  IntegerGraph result{graph.name, graph.layers, {}, {}, {}};
  std::vector<IntegerId> renamed(graph.nodes.size());
  std::map<std::pair<size_t, int>, IntegerId> delayed;  // a node's value in a later stage
  const auto in_stage = [&](IntegerId id, int wanted) {
    const size_t source = static_cast<size_t>(id);
    IntegerId value = renamed[source];
    if (graph.nodes[source].op->name == "constant") return value;
    for (int s = stage[source] + 1; s <= wanted; ++s) {
      const auto [entry, fresh] = delayed.try_emplace({source, s}, 0);
      if (fresh) {
        const IntegerNode& from = result.at(value);
        IntegerNode node{.op = &integer_op("register"),
                         .inputs = {value},
                         .range = from.range,
                         .frac = from.frac,
                         .layer = from.layer,
                         .name = graph.nodes[source].name.empty()
                                     ? ""
                                     : fmt::format("{}_r{}", graph.nodes[source].name, s)};
        result.nodes.push_back(std::move(node));
        entry->second = static_cast<IntegerId>(result.nodes.size()) - 1;
      }
      value = entry->second;
    }
    return value;
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    IntegerNode node = graph.nodes[i];
    for (IntegerId& input : node.inputs) input = in_stage(input, stage[i]);
    result.nodes.push_back(std::move(node));
    renamed[i] = static_cast<IntegerId>(result.nodes.size()) - 1;
  }
  for (const IntegerId id : graph.inputs) result.inputs.push_back(renamed[static_cast<size_t>(id)]);
  for (const IntegerId id : graph.outputs) result.outputs.push_back(in_stage(id, last + 1));
  return result;
}

int64_t register_bits(const IntegerGraph& graph) {
  int64_t bits = 0;
  for (const IntegerNode& node : graph.nodes)
    if (node.op->name == "register") bits += node.range.width();
  return bits;
}

}  // namespace

IntegerGraph pipeline(const IntegerGraph& graph, double levels) {
  if (levels <= 0) throw Error("pipeline", "the target is not above 0", "give levels of logic");
  const std::vector<int> early = earliest(graph, levels);
  int last = 0;
  for (const int stage : early) last = std::max(last, stage);
  IntegerGraph best = with_registers(graph, early, last);
  const std::vector<int> late = latest(graph, levels, last);
  // A late schedule may not fit below the inputs' stage: then it is none.
  if (std::all_of(late.begin(), late.end(), [](int stage) { return stage >= 0; })) {
    const IntegerGraph other = with_registers(graph, late, last);
    if (register_bits(other) < register_bits(best)) best = other;
  }
  verify(best);
  return best;
}

}  // namespace mase
