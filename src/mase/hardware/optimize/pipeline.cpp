// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/optimize/pipeline.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "mase/hardware/optimize/min_cut.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase {
namespace {

std::vector<double> delays_of(const IntegerGraph& graph) {
  std::vector<double> delays;
  for (const IntegerNode& node : graph.nodes)
    delays.push_back(node.op->delay ? node.op->delay(context_of(graph, node)) : 0);
  return delays;
}

// Stage of every node, as early as possible. Nodes with a stage below `first` keep it.
void make_earliest(const IntegerGraph& graph, const std::vector<double>& delays, double levels,
                   int first, std::vector<int>& stage) {
  std::vector<double> time(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (stage[i] < first) continue;
    stage[i] = first;
    for (const IntegerId input : graph.nodes[i].inputs)
      stage[i] = std::max(stage[i], stage[static_cast<size_t>(input)]);
    for (const IntegerId input : graph.nodes[i].inputs)
      if (stage[static_cast<size_t>(input)] == stage[i])
        time[i] = std::max(time[i], time[static_cast<size_t>(input)]);
    if (time[i] > 0 && time[i] + delays[i] > levels) {
      ++stage[i];
      time[i] = 0;
    }
    time[i] += delays[i];
  }
}

using Users = std::vector<std::vector<size_t>>;

Users users_of(const IntegerGraph& graph) {
  Users users(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const IntegerId input : graph.nodes[i].inputs)
      users[static_cast<size_t>(input)].push_back(i);
  return users;
}

// The same from the outputs backwards, all of which are in the last stage.
std::vector<int> latest(const IntegerGraph& graph, const std::vector<double>& delays,
                        const Users& users, double levels, int last) {
  std::vector<int> stage(graph.nodes.size(), last);
  std::vector<double> time(graph.nodes.size(), 0);  // from its result to the stage's end
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    for (const size_t user : users[i]) stage[i] = std::min(stage[i], stage[user]);
    for (const size_t user : users[i])
      if (stage[user] == stage[i]) time[i] = std::max(time[i], time[user] + delays[user]);
    if (time[i] > 0 && time[i] + delays[i] > levels && !graph.nodes[i].inputs.empty()) {
      --stage[i];
      time[i] = 0;
    }
  }
  for (const IntegerId input : graph.inputs) stage[static_cast<size_t>(input)] = 0;
  return stage;
}

// Which nodes lie before the registers that end stage `now`: those that must (later ones would not
// be ready in time), not those that cannot, and of the rest so that the registers have the fewest
// bits. A value needs registers where something behind them reads it.
std::vector<char> before_registers(const IntegerGraph& graph, int now,
                                   const std::vector<int>& early, const std::vector<int>& late) {
  const int count = static_cast<int>(graph.nodes.size()), source = 2 * count, sink = source + 1;
  MinCut cut(2 * count + 2);
  std::vector<char> is_output(graph.nodes.size(), 0);
  for (const IntegerId id : graph.outputs) is_output[static_cast<size_t>(id)] = 1;
  for (int i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(i);
    const IntegerNode& node = graph.nodes[at];
    if (early[at] > now) {
      cut.edge(i, sink, MinCut::endless);
      for (const IntegerId input : node.inputs) cut.edge(count + input, sink, MinCut::endless);
      continue;
    }
    if (early[at] < now || late[at] <= now || node.inputs.empty())
      cut.edge(source, i, MinCut::endless);
    const bool is_constant = node.op->name == "constant";
    cut.edge(i, count + i, is_constant ? 0 : std::max(1, node.range.width()));
    if (is_output[at]) cut.edge(count + i, sink, MinCut::endless);
    for (const IntegerId input : node.inputs) {
      cut.edge(i, input, MinCut::endless);          // not without its operands
      cut.edge(count + input, i, MinCut::endless);  // read behind the registers: kept for that
    }
  }
  std::vector<char> side = cut.solve(source, sink);
  side.resize(graph.nodes.size());
  return side;
}

// Stages between which the registers have as few bits as can be, one boundary after another.
std::vector<int> with_few_bits(const IntegerGraph& graph, const std::vector<double>& delays,
                               double levels) {
  std::vector<int> stage(graph.nodes.size(), 0);
  make_earliest(graph, delays, levels, 0, stage);
  const int last = *std::max_element(stage.begin(), stage.end());
  const Users users = users_of(graph);
  const std::vector<int> late = latest(graph, delays, users, levels, last);
  for (int now = 0; now < last; ++now) {
    const std::vector<char> before = before_registers(graph, now, stage, late);
    for (size_t i = 0; i < stage.size(); ++i)
      if (stage[i] >= now) stage[i] = before[i] ? now : now + 1;
    make_earliest(graph, delays, levels, now + 1, stage);
  }
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

}  // namespace

IntegerGraph pipeline(const IntegerGraph& graph, double levels) {
  if (levels <= 0) throw Error("pipeline", "the target is not above 0", "give levels of logic");
  const std::vector<double> delays = delays_of(graph);
  // Operations are placed by their own delays, and what comes out is measured bit by bit: a chain
  // behind a chain takes less than both. The longest stages that keep the target are taken.
  for (double target = 1.6 * levels;; target = target > levels / 4 ? 0.92 * target : 0) {
    const std::vector<int> stage = with_few_bits(graph, delays, target);
    IntegerGraph next = with_registers(graph, stage, *std::max_element(stage.begin(), stage.end()));
    const double found = cost_of(next).levels;
    if (found <= levels) {
      verify(next);
      return next;
    }
    if (target == 0)
      throw Error("--levels",
                  fmt::format("registers {} levels apart would stand inside a single operation; "
                              "the longest one takes {:.0f}, with the cells at both ends",
                              levels, std::ceil(found)),
                  fmt::format("give at least --levels {:.0f}", std::ceil(found)));
  }
}

}  // namespace mase
