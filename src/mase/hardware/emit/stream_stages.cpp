// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/emit/stream_stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "mase/hardware/graph/builder.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase {
namespace {

[[noreturn]] void refuse_stream(const IntegerGraph& graph, const std::string& cause) {
  throw Error(fmt::format("style stream: {}", printable(graph.name)), cause,
              "use --style unrolled, or layers one after another");
}

ElementType element_of(const std::vector<IntegerRange>& ranges) {
  ElementType type;
  for (const IntegerRange& range : ranges) type.is_signed = type.is_signed || range.is_signed();
  for (const IntegerRange& range : ranges)
    type.width = std::max(type.width, range.width() + (type.is_signed && !range.is_signed()));
  return type;
}

int signed_width(int64_t low, int64_t high) {
  return IntegerRange{std::min<int64_t>(low, -1), std::max<int64_t>(high, 0)}.width();
}

// Layers over windows are matrices of all positions here, most of them zeros: right, and only for
// small planes.
constexpr size_t most_weights = size_t{1} << 20;
void check_layer(const IntegerGraph& graph, const IntegerGraph::LinearLayer& layer) {
  const std::string& name = graph.layers[static_cast<size_t>(layer.layer)];
  if (layer.sliding && layer.sliding->largest)
    refuse_stream(graph, fmt::format("{} takes the largest of windows", name));
  if (layer.sliding && layer.inputs.size() * layer.outputs.size() > most_weights)
    refuse_stream(graph, fmt::format("{} has windows over {} by {} positions, which this style "
                                     "writes as a matrix of all of them",
                                     name, layer.sliding->size[0], layer.sliding->size[1]));
}

// Nodes as sums of multiples of `stops`, by the position of these.
struct LocalForm {
  std::vector<int64_t> factors;  // of all stops
  int64_t constant = 0;
};
class LocalForms {
 public:
  LocalForms(const IntegerGraph& graph, const std::vector<IntegerId>& stops)
      : graph_(graph), count_(stops.size()), place_(graph.nodes.size(), -1) {
    for (size_t i = 0; i < stops.size(); ++i)
      if (stops[i] >= 0 && place_[static_cast<size_t>(stops[i])] < 0)
        place_[static_cast<size_t>(stops[i])] = static_cast<int>(i);
  }
  // Nothing if it is no such sum.
  std::optional<LocalForm> of(IntegerId id) const {
    LocalForm form{std::vector<int64_t>(count_, 0), 0};
    std::map<IntegerId, int64_t> waiting;  // multiples of nodes; users come before operands
    const auto add = [&](IntegerId node, int64_t multiple) {
      const int place = place_[static_cast<size_t>(node)];
      int64_t& mine = place < 0 ? waiting[node] : form.factors[static_cast<size_t>(place)];
      mine = checked_add(mine, multiple);
    };
    add(id, 1);
    while (!waiting.empty()) {
      const auto last = std::prev(waiting.end());
      const auto [at, multiple] = *last;
      waiting.erase(last);
      const IntegerNode& node = graph_.at(at);
      if (!node.op->affine) return {};
      const AffineRule rule = node.op->rule(context_of(graph_, node));
      form.constant = checked_add(form.constant, checked_multiply(rule.constant, multiple));
      for (size_t k = 0; k < node.inputs.size(); ++k)
        add(node.inputs[k], checked_multiply(rule.factors[k], multiple));
    }
    return form;
  }

 private:
  const IntegerGraph& graph_;
  size_t count_;
  std::vector<int> place_;
};

// What lies between one of `sums` and node `id`: that sum, and the nodes in order.
struct Between {
  std::optional<size_t> sum;
  std::vector<IntegerId> nodes;
};
Between between(const IntegerGraph& graph, const std::map<IntegerId, size_t>& sums, IntegerId id) {
  Between result;
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
  visit(visit, id);
  return result;
}

// The same operations with the same numbers are one function, whatever intervals they met.
std::string signature(const IntegerGraph& graph, const Between& path, IntegerId sum,
                      IntegerId end) {
  std::map<IntegerId, size_t> index;
  std::string text = fmt::format("frac {}", graph.at(sum).frac);
  index[sum] = 0;
  for (size_t k = 0; k < path.nodes.size(); ++k) {
    const IntegerNode& node = graph.at(path.nodes[k]);
    index[path.nodes[k]] = k + 1;
    text += fmt::format("; {} frac {}", node.op->name, node.frac);
    for (const IntegerId input : node.inputs) text += fmt::format(" %{}", index[input]);
    for (const int64_t number : node.numbers) text += fmt::format(" {}", number);
  }
  return text + fmt::format("; %{}", index[end]);
}

IntegerGraph function_graph(const IntegerGraph& graph, const Between& path, IntegerId sum,
                            IntegerId end, const IntegerRange& range, const std::string& name) {
  IntegerBuilder builder(name);
  std::map<IntegerId, IntegerId> renamed;
  renamed[sum] = builder.input(range, graph.at(sum).frac, "sum");
  for (const IntegerId id : path.nodes) {
    const IntegerNode& node = graph.at(id);
    if (node.op->name == "constant") {
      renamed[id] = builder.constant(node.numbers[0], node.frac);
      continue;
    }
    std::vector<IntegerId> inputs;
    for (const IntegerId input : node.inputs) inputs.push_back(renamed.at(input));
    renamed[id] = builder.node(node.op->name, std::move(inputs), node.numbers);
  }
  builder.output(renamed.at(end));
  return optimize(builder.finish()).graph;
}

struct Wanted {
  size_t sum;
  Between path;
  IntegerId end;
};

// Functions of a stage: one for each signature, for the union of the sums it is used for.
void add_functions(StreamStage& stage, const IntegerGraph& graph, const std::vector<Wanted>& wanted,
                   const std::vector<IntegerId>& sums) {
  std::map<std::string, size_t> known;
  std::vector<IntegerRange> ranges;
  std::vector<size_t> example;
  for (size_t k = 0; k < wanted.size(); ++k) {
    const IntegerId sum = sums[wanted[k].sum];
    const auto [entry, fresh] =
        known.try_emplace(signature(graph, wanted[k].path, sum, wanted[k].end), ranges.size());
    const IntegerRange& range = graph.at(sum).range;
    if (fresh) {
      ranges.push_back(range);
      example.push_back(k);
    } else {
      IntegerRange& all = ranges[entry->second];
      all = {std::min(all.low, range.low), std::max(all.high, range.high)};
    }
    stage.functions.push_back(static_cast<int>(entry->second));
  }
  for (size_t f = 0; f < ranges.size(); ++f) {
    const Wanted& one = wanted[example[f]];
    stage.graphs.push_back(function_graph(graph, one.path, sums[one.sum], one.end, ranges[f],
                                          fmt::format("{}_f{}", stage.name, f)));
  }
}

constexpr int64_t control_registers = 14;  // of a stage, about

// What of a stage does not depend on how it is folded.
struct StageWidths {
  explicit StageWidths(const StreamStage& stage)
      : weight(stage.weight_width()), sum(stage.sum_width()), in(stage.in.width) {}
  int weight, sum, in;
  // Yosys puts products of so many bits into multiplier blocks.
  bool in_blocks() const { return in + weight >= 9; }
};

// A multiplier block is as dear as the look-up tables that it stands for.
double stage_area(const StreamStage& stage, const StageWidths& widths, int before, int after) {
  const double in_depth = static_cast<double>(stage.inputs()) / before;
  const double multipliers = static_cast<double>(before) * after;
  const double weight_bits = static_cast<double>(stage.inputs()) * stage.outputs() * widths.weight;
  return multipliers * (widths.in * widths.weight + widths.sum) + weight_bits / 64 +
         (after < stage.outputs() ? before * widths.in * 2 * in_depth / 3 : 0);
}

// Fitted to Yosys 0.23 on ten designs (docs/hardware.md): products outside of blocks, sums of
// those in blocks, tables of weights, and what every input bit has for buffers and choices.
double stage_luts(const StageWidths& widths, int before, int after, int64_t cycles) {
  const double products = static_cast<double>(before) * after;
  const double own = widths.in_blocks() ? 0.234 * widths.sum : 1.346 * widths.in * widths.weight;
  const double table =
      cycles > 1 ? 1.069 * widths.weight * std::max(1.0, static_cast<double>(cycles) / 64) : 0;
  return products * (own + table) + 9.762 * before * widths.in;
}

std::vector<int> divisors(int number) {
  std::vector<int> result;
  for (int k = 1; k <= number; ++k)
    if (number % k == 0) result.push_back(k);
  return result;
}

}  // namespace

int StreamStage::weight_width() const {
  int64_t low = 0, high = 0;
  for (const auto& row : weights)
    for (const int64_t weight : row) {
      low = std::min(low, weight);
      high = std::max(high, weight);
    }
  return signed_width(low, high);
}

int StreamStage::sum_width() const {
  const int64_t largest = int64_t{1} << (in.width - (in.is_signed ? 1 : 0));
  int64_t most = 1;
  for (size_t o = 0; o < constants.size(); ++o) {
    int64_t sum = std::abs(constants[o]);
    for (const auto& row : weights)
      sum = checked_add(sum, checked_multiply(std::abs(row[o]), largest));
    most = std::max(most, sum);
  }
  return signed_width(-most, most);
}

std::vector<StreamStage> stream_stages(const IntegerGraph& graph) {
  if (graph.linear.empty()) refuse_stream(graph, "it has no linear layers");
  for (const IntegerGraph::LinearLayer& layer : graph.linear) check_layer(graph, layer);
  std::vector<StreamStage> stages;
  std::vector<IntegerId> inputs = graph.inputs;
  for (size_t k = 0; k < graph.linear.size(); ++k) {
    const IntegerGraph::LinearLayer& layer = graph.linear[k];
    StreamStage stage;
    stage.name = graph.layers[static_cast<size_t>(layer.layer)];
    if (k == 0) {
      for (const IntegerId id : layer.inputs)
        if (id >= 0 && std::find(inputs.begin(), inputs.end(), id) == inputs.end())
          refuse_stream(graph, fmt::format("{} does not read the inputs as they are", stage.name));
    }
    // Where the values go: the next layer's inputs that are read, or the outputs.
    std::vector<IntegerId> ends = graph.outputs;
    if (k + 1 < graph.linear.size()) {
      ends.clear();
      for (const IntegerId id : graph.linear[k + 1].inputs)
        if (id >= 0) ends.push_back(id);
    }
    if (ends.empty())
      refuse_stream(graph, fmt::format("nothing that {} computes is read", stage.name));
    std::map<IntegerId, size_t> sums;
    for (size_t o = 0; o < layer.outputs.size(); ++o)
      if (layer.outputs[o] >= 0) sums.try_emplace(layer.outputs[o], o);
    std::vector<Wanted> wanted;
    for (const IntegerId end : ends) {
      Between path = between(graph, sums, end);
      // A value that depends on nothing is as well a function of any sum.
      const size_t sum = path.sum.value_or(sums.empty() ? 0 : sums.begin()->second);
      if (sums.empty()) refuse_stream(graph, fmt::format("{} has constant outputs", stage.name));
      wanted.push_back({sum, std::move(path), end});
    }
    const LocalForms forms(graph, inputs);
    std::vector<IntegerRange> in_ranges, out_ranges;
    for (const IntegerId id : inputs) {
      in_ranges.push_back(graph.at(id).range);
      stage.frac_in = std::max(stage.frac_in, graph.at(id).frac);
    }
    stage.weights.assign(inputs.size(), std::vector<int64_t>(wanted.size(), 0));
    for (size_t o = 0; o < wanted.size(); ++o) {
      const std::optional<LocalForm> form = forms.of(layer.outputs[wanted[o].sum]);
      if (!form) refuse_stream(graph, fmt::format("{} is no sum of its inputs", stage.name));
      for (size_t i = 0; i < inputs.size(); ++i) stage.weights[i][o] = form->factors[i];
      stage.constants.push_back(form->constant);
    }
    add_functions(stage, graph, wanted, layer.outputs);
    for (const IntegerId end : ends) {
      out_ranges.push_back(graph.at(end).range);
      stage.frac_out = std::max(stage.frac_out, graph.at(end).frac);
    }
    stage.in = element_of(in_ranges);
    // Functions may have wider results than single features.
    for (const IntegerGraph& function : stage.graphs)
      out_ranges.push_back(function.at(function.outputs[0]).range);
    stage.out = element_of(out_ranges);
    if (!stages.empty()) stage.in = stages.back().out;
    stages.push_back(std::move(stage));
    inputs = ends;
  }
  return stages;
}

std::vector<int64_t> run_stages(const std::vector<StreamStage>& stages,
                                const std::vector<int64_t>& rows) {
  std::vector<int64_t> codes = rows;
  const size_t count = rows.size() / static_cast<size_t>(stages.at(0).inputs());
  for (const StreamStage& stage : stages) {
    const size_t in = static_cast<size_t>(stage.inputs()),
                 out = static_cast<size_t>(stage.outputs());
    std::vector<IntegerProgram> functions(stage.graphs.begin(), stage.graphs.end());
    std::vector<int64_t> results(count * out), sums(count);
    for (size_t o = 0; o < out; ++o) {
      std::fill(sums.begin(), sums.end(), stage.constants[o]);
      for (size_t i = 0; i < in; ++i)
        if (const int64_t weight = stage.weights[i][o]; weight != 0)
          for (size_t row = 0; row < count; ++row) sums[row] += weight * codes[row * in + i];
      const std::vector<int64_t> values =
          functions[static_cast<size_t>(stage.functions[o])].run(sums);
      for (size_t row = 0; row < count; ++row) results[row * out + o] = values[row];
    }
    codes = std::move(results);
  }
  return codes;
}

StreamPlan plan_stream(const std::vector<StreamStage>& stages, int64_t cycles) {
  // The cheapest way to every parallelism after each stage.
  struct Way {
    double area = 0;
    int before = 0;
  };
  std::vector<std::map<int, Way>> ways(stages.size() + 1);
  for (const int p : divisors(stages[0].inputs())) ways[0][p] = {};
  for (size_t k = 0; k < stages.size(); ++k) {
    const StreamStage& stage = stages[k];
    const StageWidths widths(stage);
    for (const auto& [before, way] : ways[k])
      for (const int after : divisors(stage.outputs())) {
        const int64_t own =
            static_cast<int64_t>(stage.inputs() / before) * (stage.outputs() / after);
        if (own > cycles) continue;
        const double area = way.area + stage_area(stage, widths, before, after);
        const auto [entry, fresh] = ways[k + 1].try_emplace(after, Way{area, before});
        if (!fresh && area < entry->second.area) entry->second = {area, before};
      }
    if (ways[k + 1].empty())
      throw Error("--cycles", fmt::format("no row every {} cycles", cycles), "give at least 1");
  }
  StreamPlan plan;
  plan.latency = 1;
  const auto best =
      std::min_element(ways.back().begin(), ways.back().end(),
                       [](const auto& a, const auto& b) { return a.second.area < b.second.area; });
  plan.area = best->second.area;
  plan.parallelism.assign(stages.size() + 1, 0);
  plan.parallelism.back() = best->first;
  for (size_t k = stages.size(); k-- > 0;)
    plan.parallelism[k] = ways[k + 1].at(plan.parallelism[k + 1]).before;
  for (size_t k = 0; k < stages.size(); ++k) {
    const StreamStage& stage = stages[k];
    const int before = plan.parallelism[k], after = plan.parallelism[k + 1];
    const int64_t in_depth = stage.inputs() / before, out_depth = stage.outputs() / after;
    plan.cycles.push_back(in_depth * out_depth);
    plan.interval = std::max(plan.interval, plan.cycles.back());
    // A row that is used once is used as it arrives, others when they are there; then the sum, the
    // output register and the next skid buffer.
    plan.latency += (k == 0 ? in_depth : 1) + (out_depth > 1 ? in_depth * out_depth : 0) + 2;
    const StageWidths widths(stage);
    plan.luts += stage_luts(widths, before, after, plan.cycles.back());
    if (widths.in_blocks()) plan.dsps += static_cast<int64_t>(before) * after;
    plan.registers +=
        after * (widths.sum + stage.out.width) + 2 * before * widths.in + control_registers;
  }
  return plan;
}

}  // namespace mase
