// SPDX-License-Identifier: Apache-2.0
// profile_statistics: statistics of weights and activations of chosen nodes, written into their
// software metadata. Activations stream through batch by batch; each row is one sample.
#include <algorithm>
#include <map>

#include "mase/base/fields.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/value_type.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/select.h"
#include "mase/passes/statistics/statistic.h"

namespace mase::profile_statistics_pass {
namespace {

using Collectors = std::vector<std::pair<std::string, std::unique_ptr<Statistic>>>;

Collectors make_collectors(const Value& statistics) {
  Collectors collectors;
  if (statistics.is_null()) return collectors;
  for (const auto& [name, args] : statistics.as_dict()) {
    const StatisticRecord& record = Registry<StatisticRecord>::instance().get(name);
    collectors.emplace_back(record.name, record.make(validate(args, record.schema, name)));
  }
  return collectors;
}

Value results_of(const Collectors& collectors) {
  Dict results;
  for (const auto& [name, collector] : collectors) results.set(name, collector->compute());
  return results;
}

Value& stat_of(Node& node, const std::string& side, const std::string& name) {
  return node.meta["software"][side][name]["stat"];
}

void merge(Value& stat, const Value& results) {
  for (const auto& [name, value] : results.as_dict()) stat.dict().set(name, value);
}

void check_statistics(const Value& statistics, const std::string& path, Problems& problems) {
  if (statistics.is_null()) return;
  const auto& registry = Registry<StatisticRecord>::instance();
  for (const auto& [name, args] : statistics.as_dict()) {
    const StatisticRecord* record = registry.find(name);
    if (!record)
      problems.add(Error(args.position(), path,
                         fmt::format("unknown statistic '{}'", printable(name)),
                         suggestion(name, registry.names()))
                       .as(Mistake::unknown_name));
    else
      validate(args, record->schema, path + "." + name, problems);
  }
}

// Nothing chosen at all: the ranges and variances of every layer's parameters and inputs.
bool is_unsaid(const Value& args) {
  for (const char* key : {"target_weight_nodes", "target_activation_nodes", "weight_statistics",
                          "activation_statistics"})
    if (!args[key].is_null()) return false;
  return true;
}

Value with_defaults(const Graph& graph, const Value& args) {
  if (!is_unsaid(args)) return args;
  List weights, activations;
  const std::vector<DType> elements = infer_elements(graph);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    if (!module) continue;
    if (!numeric_tensors(*module).empty()) weights.push_back(node.name);
    const std::vector<NodeId> inputs = graph.inputs_of(id);
    const bool floats = std::all_of(inputs.begin(), inputs.end(), [&](NodeId input) {
      return elements[static_cast<size_t>(input)] == DType::f32;
    });
    if (floats) activations.push_back(node.name);
  }
  const Value statistics = Dict{{"range_min_max", Dict{}}, {"variance_precise", Dict{}}};
  Dict all = args.as_dict();
  all.set("by", "name");
  all.set("target_weight_nodes", weights);
  all.set("target_activation_nodes", activations);
  all.set("weight_statistics", statistics);
  all.set("activation_statistics", statistics);
  return all;
}

void check(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  const SelectBy by = select_by(args["by"]);
  for (const char* kind : {"weight", "activation"}) {
    const std::string nodes = fmt::format("target_{}_nodes", kind);
    const std::string statistics = fmt::format("{}_statistics", kind);
    const bool has_nodes = args[nodes].is_list() && !args[nodes].as_list().empty();
    const bool has_statistics = args[statistics].is_dict() && !args[statistics].as_dict().empty();
    select_nodes(graph, by, args[nodes], path + "." + nodes, problems);
    check_statistics(args[statistics], path + "." + statistics, problems);
    if (has_nodes && !has_statistics)
      problems.add(Error(args[nodes].position(), path + "." + nodes,
                         fmt::format("nodes are chosen but '{}' names no statistic", statistics)));
    if (has_statistics && !has_nodes)
      problems.add(Error(args[statistics].position(), path + "." + statistics,
                         fmt::format("statistics are asked for but '{}' names no node", nodes)));
  }
}

void profile_weights(Graph& graph, const Value& args, Dict& report) {
  Problems problems;
  for (const NodeId id :
       select_nodes(graph, select_by(args["by"]), args["target_weight_nodes"], "", problems)) {
    Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    if (!module) continue;
    for (const auto& [name, tensor] : numeric_tensors(*module)) {
      const Collectors collectors = make_collectors(args["weight_statistics"]);
      for (const auto& [statistic, collector] : collectors)
        collector->update(tensor.values<float>(), tensor.shape(), 1);
      const Value results = results_of(collectors);
      merge(stat_of(node, "args", name), results);
      report[node.name][name] = results;
    }
  }
}

// One watched tensor: an argument of a node, or its result.
struct Watch {
  NodeId node;
  std::string side, name;
  Collectors collectors;
};

void profile_activations(Graph& graph, const Value& args, PassContext& context, Dict& report) {
  Problems problems;
  const std::vector<NodeId> nodes =
      select_nodes(graph, select_by(args["by"]), args["target_activation_nodes"], "", problems);
  if (nodes.empty()) return;
  std::map<NodeId, std::vector<Watch>> watches;  // by the node whose result is watched
  std::vector<NodeId> sources;
  const auto watch = [&](NodeId source, NodeId node, const char* side, std::string name) {
    watches[source].push_back(
        {node, side, std::move(name), make_collectors(args["activation_statistics"])});
    sources.push_back(source);
  };
  for (const NodeId id : nodes) {
    const std::vector<NodeId> inputs = graph.inputs_of(id);
    if (args["profile_input_activation"].as_bool())
      for (size_t i = 0; i < inputs.size(); ++i) watch(inputs[i], id, "args", input_name(i));
    if (args["profile_output_activation"].as_bool()) watch(id, id, "results", "data_out_0");
  }
  const std::vector<Tensor> inputs = sample_inputs(graph, context, args["num_samples"].as_int());
  observe_nodes(graph, inputs, sources, [&](NodeId source, const Tensor& result) {
    Shape sample = result.shape();
    const int64_t rows = sample.empty() ? 1 : sample[0];
    if (!sample.empty()) sample[0] = 1;  // MASE keeps a leading dimension of one
    for (Watch& watched : watches[source])
      for (auto& [name, collector] : watched.collectors)
        collector->update(result.values<float>(), sample, rows);
  });
  for (auto& [source, list] : watches)
    for (const Watch& watched : list) {
      Node& node = graph.node(watched.node);
      const Value results = results_of(watched.collectors);
      merge(stat_of(node, watched.side, watched.name), results);
      report[node.name][watched.name] = results;
    }
}

PassResult run(Graph& graph, const Value& given, PassContext& context) {
  ensure_metadata(graph, context);
  const Value args = with_defaults(graph, given);
  Dict weights, activations;
  profile_weights(graph, args, weights);
  profile_activations(graph, args, context, activations);
  return {Dict{{"weights", weights},
               {"activations", activations},
               {"samples", has_samples(graph, context) ? "data" : "random"}},
          false};
}

const Register<PassRecord> registered{{
    .name = "profile_statistics",
    .aliases = {"profile_statistics_analysis_pass"},
    .summary = "Statistics of weights and activations of chosen nodes",
    .help =
        "The collectors: record, variance_online, variance_online_mase, variance_precise, "
        "range_n_sigma,\n"
        "range_min_max, range_quantile, abs_mean, histogram, kurtosis. Results stand in the\n"
        "nodes' software metadata; report_node_meta_param prints them. Where neither nodes nor\n"
        "statistics are named, range_min_max and variance_precise of every layer's parameters\n"
        "and inputs.",
    .schema = {{
        by_field(),
        list_field("target_weight_nodes", "nodes whose parameters and buffers are profiled"),
        list_field("target_activation_nodes", "nodes whose inputs are profiled"),
        table_field("weight_statistics", "a table of arguments per statistic"),
        table_field("activation_statistics", "a table of arguments per statistic"),
        integer_field("num_samples", "how many rows run through the network", 32).from(1),
        boolean_field("profile_input_activation", "profile what goes into the chosen nodes", true),
        boolean_field("profile_output_activation", "profile what comes out of them", false),
        {.name = "input_generator",
         .help = "MASE's argument; the samples are those of the data set named beside it"},
    }},
    .check = check,
    .run = run,
}};

}  // namespace
}  // namespace mase::profile_statistics_pass
