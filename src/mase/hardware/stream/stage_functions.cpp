// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/stream/stage_functions.h"

#include <algorithm>
#include <numeric>

#include "mase/hardware/graph/builder.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase {
namespace {

// The same operations with the same numbers are one function, whatever intervals they met.
std::string signature(const IntegerGraph& graph, const StageFunction& function) {
  std::map<IntegerId, size_t> index;
  std::string text = fmt::format("frac {}", graph.at(function.sum).frac);
  index[function.sum] = 0;
  const std::vector<IntegerId>& nodes = function.path.nodes;
  for (size_t k = 0; k < nodes.size(); ++k) {
    const IntegerNode& node = graph.at(nodes[k]);
    index[nodes[k]] = k + 1;
    text += fmt::format("; {} frac {}", node.op->name, node.frac);
    for (const IntegerId input : node.inputs) text += fmt::format(" %{}", index[input]);
    for (const int64_t number : node.numbers) text += fmt::format(" {}", number);
  }
  return text + fmt::format("; %{}", index[function.path.end]);
}

// A node once more, of other operands.
IntegerId copied(IntegerBuilder& builder, const IntegerNode& node,
                 const std::map<IntegerId, IntegerId>& renamed) {
  if (node.op->name == "constant") return builder.constant(node.numbers[0], node.frac);
  std::vector<IntegerId> inputs;
  for (const IntegerId input : node.inputs) inputs.push_back(renamed.at(input));
  return builder.node(node.op->name, std::move(inputs), node.numbers);
}

IntegerGraph function_graph(const IntegerGraph& graph, const StageFunction& function,
                            const std::string& name) {
  IntegerBuilder builder(name);
  std::map<IntegerId, IntegerId> renamed;
  renamed[function.sum] = builder.input(function.range, graph.at(function.sum).frac, "sum");
  for (const IntegerId id : function.path.nodes)
    renamed[id] = copied(builder, graph.at(id), renamed);
  builder.output(renamed.at(function.path.end));
  return optimize(builder.finish()).graph;
}

void widen(IntegerRange& range, const IntegerRange& more) {
  range = {std::min(range.low, more.low), std::max(range.high, more.high)};
}

// All values within a range, of functions that are compared.
constexpr int64_t most_compared_sums = int64_t{1} << 24;
bool same_within(const IntegerGraph& a, const IntegerGraph& b, const IntegerRange& range) {
  const IntegerProgram first(a), second(b);
  for (int64_t low = range.low; low <= range.high; low += 4096) {
    std::vector<int64_t> sums(static_cast<size_t>(std::min<int64_t>(4096, range.high - low + 1)));
    std::iota(sums.begin(), sums.end(), low);
    if (first.run(sums) != second.run(sums)) return false;
  }
  return true;
}

}  // namespace

void refuse_stream(const IntegerGraph& graph, const std::string& cause) {
  throw Error(fmt::format("style stream: {}", printable(graph.name)), cause,
              "use --style unrolled, or layers one after another");
}

LocalForms::LocalForms(const IntegerGraph& graph, const std::vector<IntegerId>& stops)
    : graph_(graph), place_(graph.nodes.size(), -1), factors_(stops.size(), 0) {
  for (size_t i = 0; i < stops.size(); ++i)
    if (stops[i] >= 0 && place_[static_cast<size_t>(stops[i])] < 0)
      place_[static_cast<size_t>(stops[i])] = static_cast<int>(i);
}

std::optional<LocalForm> LocalForms::of(IntegerId id) {
  LocalForm form;
  std::vector<size_t> touched;
  bool is_sum = true;
  std::map<IntegerId, int64_t> waiting;  // multiples of nodes; users come before operands
  const auto add = [&](IntegerId node, int64_t multiple) {
    const int place = place_[static_cast<size_t>(node)];
    if (place >= 0) touched.push_back(static_cast<size_t>(place));
    int64_t& mine = place < 0 ? waiting[node] : factors_[static_cast<size_t>(place)];
    mine = checked_add(mine, multiple);
  };
  add(id, 1);
  while (!waiting.empty() && is_sum) {
    const auto last = std::prev(waiting.end());
    const auto [at, multiple] = *last;
    waiting.erase(last);
    const IntegerNode& node = graph_.at(at);
    is_sum = node.op->affine;
    if (!is_sum) continue;
    const AffineRule rule = node.op->rule(context_of(graph_, node));
    form.constant = checked_add(form.constant, checked_multiply(rule.constant, multiple));
    for (size_t k = 0; k < node.inputs.size(); ++k)
      add(node.inputs[k], checked_multiply(rule.factors[k], multiple));
  }
  for (const size_t place : touched)
    if (const int64_t factor = std::exchange(factors_[place], 0))
      form.terms.emplace_back(place, factor);
  if (!is_sum) return {};
  return form;
}

Between between(const IntegerGraph& graph, const std::map<IntegerId, size_t>& sums, IntegerId end) {
  Between result;
  result.end = end;
  std::map<IntegerId, bool> seen;
  const auto visit = [&](const auto& self, IntegerId at) -> void {
    if (!seen.emplace(at, true).second) return;
    if (const auto found = sums.find(at); found != sums.end()) {
      if (result.sum && *result.sum != found->second)
        refuse_stream(graph, "a value depends on several sums at once");
      result.sum = found->second;
      return;
    }
    const IntegerNode& node = graph.at(at);
    if (!node.op->evaluate) refuse_stream(graph, "a layer reads inputs beside the layer before it");
    for (const IntegerId input : node.inputs) self(self, input);
    result.nodes.push_back(at);
  };
  visit(visit, end);
  return result;
}

StageFunction common_function(const IntegerGraph& graph, std::vector<StageFunction> all,
                              const std::string& stage) {
  std::map<std::string, StageFunction> different;
  for (StageFunction& one : all) {
    const auto [entry, fresh] = different.try_emplace(signature(graph, one), one);
    if (!fresh) widen(entry->second.range, one.range);
  }
  // The one with the widest range has lost the fewest operations.
  const auto width = [](const auto& entry) {
    return entry.second.range.high - entry.second.range.low;
  };
  const auto widest =
      std::max_element(different.begin(), different.end(),
                       [&](const auto& a, const auto& b) { return width(a) < width(b); });
  StageFunction result = widest->second;
  for (const auto& entry : different) widen(result.range, entry.second.range);
  if (different.size() == 1) return result;
  const IntegerGraph whole = function_graph(graph, result, "whole");
  int64_t compared = 0;
  for (const auto& entry : different) {
    compared += width(entry);
    if (compared > most_compared_sums ||
        graph.at(entry.second.path.end).frac != graph.at(result.path.end).frac ||
        !same_within(whole, function_graph(graph, entry.second, "part"), entry.second.range))
      refuse_stream(graph, fmt::format("{} has other functions at other positions", stage));
  }
  return result;
}

void add_functions(StreamStage& stage, const IntegerGraph& graph,
                   const std::vector<StageFunction>& wanted) {
  std::map<std::string, size_t> known;
  std::vector<StageFunction> different;
  for (const StageFunction& one : wanted) {
    const auto [entry, fresh] = known.try_emplace(signature(graph, one), different.size());
    if (fresh)
      different.push_back(one);
    else
      widen(different[entry->second].range, one.range);
    stage.functions.push_back(static_cast<int>(entry->second));
  }
  for (size_t f = 0; f < different.size(); ++f)
    stage.graphs.push_back(
        function_graph(graph, different[f], fmt::format("{}_f{}", stage.name, f)));
}

bool does_nothing(const std::vector<IntegerGraph>& functions) {
  return std::all_of(functions.begin(), functions.end(), [](const IntegerGraph& function) {
    return function.outputs == function.inputs;
  });
}

void move_before_largest(StreamStage& before, StreamStage& largest) {
  const auto never_falls = [](const IntegerGraph& graph) {
    return std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const IntegerNode& node) {
      const std::string& op = node.op->name;
      return op == "input" || op == "constant" || op == "relu" || op == "clamp" || op == "floor" ||
             op == "round_even" || op == "shift" || op == "add" ||
             (op == "scale" && node.numbers[0] > 0);
    });
  };
  if (!std::all_of(largest.graphs.begin(), largest.graphs.end(), never_falls) ||
      does_nothing(largest.graphs))
    return;
  std::map<std::pair<int, int>, int> known;
  std::vector<IntegerGraph> graphs;
  std::vector<int> functions;
  for (size_t c = 0; c < largest.functions.size(); ++c) {
    const std::pair<int, int> both(before.functions[c], largest.functions[c]);
    const auto [entry, fresh] = known.try_emplace(both, static_cast<int>(graphs.size()));
    functions.push_back(entry->second);
    if (!fresh) continue;
    const IntegerGraph& f = before.graphs[static_cast<size_t>(both.first)];
    const IntegerGraph& g = largest.graphs[static_cast<size_t>(both.second)];
    IntegerBuilder builder(f);
    std::map<IntegerId, IntegerId> renamed;
    renamed[g.inputs[0]] = f.outputs[0];
    for (size_t k = 0; k < g.nodes.size(); ++k)
      if (const IntegerId id = static_cast<IntegerId>(k); id != g.inputs[0])
        renamed[id] = copied(builder, g.nodes[k], renamed);
    IntegerGraph joined = builder.graph();
    joined.name = fmt::format("{}_f{}", before.name, graphs.size());
    joined.outputs = {renamed.at(g.outputs[0])};
    graphs.push_back(optimize(without_dead_nodes(joined)).graph);
  }
  before.graphs = std::move(graphs);
  before.functions = std::move(functions);
  // Values at positions that no window has may reach further.
  for (const IntegerGraph& graph : before.graphs) {
    const IntegerRange& range = graph.at(graph.outputs[0]).range;
    largest.out.is_signed = largest.out.is_signed || range.is_signed();
    largest.out.width =
        std::max(largest.out.width, range.width() + (largest.out.is_signed && !range.is_signed()));
  }
  before.out = largest.in = largest.out;
  before.frac_out = largest.frac_in = largest.frac_out;
  largest.graphs.clear();
  for (int& function : largest.functions) function = 0;
  IntegerBuilder builder(largest.name + "_f0");
  builder.output(builder.input(largest.in.range(), largest.frac_in, "sum"));
  largest.graphs.push_back(builder.finish());
}

}  // namespace mase
