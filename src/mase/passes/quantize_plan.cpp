// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/quantize_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/select.h"

namespace mase {
namespace {

struct Rule {
  std::string key;
  Value config;
  std::string path;  // of the config
};

std::set<std::string> all_operands() {
  std::set<std::string> operands;
  for (const OpRecord* op : Registry<OpRecord>::instance().all())
    for (const std::string& prefix : operand_rules(*op).prefixes()) operands.insert(prefix);
  return operands;
}

// A rule is a table that holds a table called config.
bool read_rule(const std::string& key, const Value& value, const std::string& path, Rule& rule,
               Problems& problems) {
  const std::string inner = path + "." + key;
  if (!value.is_dict()) {
    problems.add(Error(value.position(), path, fmt::format("unknown key '{}'", printable(key)),
                       "rules are tables: write [" + inner + ".config]")
                     .as(Mistake::unknown_key));
    return false;
  }
  for (const auto& [name, item] : value.as_dict()) {
    if (name == "config") continue;
    problems.add(Error(item.position(), inner, fmt::format("unknown key '{}'", printable(name)),
                       nearest_names(name, {"config"}).empty()
                           ? "put it below [" + inner + ".config]"
                           : "did you mean 'config'?")
                     .as(Mistake::unknown_key));
  }
  const Value* config = value.as_dict().find("config");
  if (!config) {
    if (value.as_dict().empty())
      problems.add(
          Error(value.position(), inner, "'config' is missing", "write [" + inner + ".config]")
              .as(Mistake::missing_key));
    return false;
  }
  rule = {key, *config, inner + ".config"};
  return true;
}

class Planner {
 public:
  Planner(const Graph& graph, const Value& args, const std::string& path, Problems& problems)
      : graph_(graph), args_(args), path_(path), problems_(problems), by_(select_by(args["by"])) {}

  std::vector<PlannedNode> plan() {
    const size_t before = problems_.errors().size();
    std::vector<Rule> rules;
    for (const auto& [key, value] : args_.as_dict()) {
      if (key == "by" || key == "default") continue;
      Rule rule;
      if (read_rule(key, value, path_, rule, problems_)) rules.push_back(std::move(rule));
    }
    for (const Rule& rule : rules) take(rule, args_[rule.key].position());
    const Value& fallback = args_["default"];
    if (!fallback.is_null()) {
      Rule rule;
      if (read_rule("default", fallback, path_, rule, problems_)) give_default(rule);
    }
    if (rules.empty() && problems_.errors().size() == before &&
        std::none_of(taken_.begin(), taken_.end(),
                     [](const auto& entry) { return entry.second.changes(); }))
      problems_.add(Error(args_.position(), path_, "no rule says what to quantise",
                          "add a table such as [" + path_ + ".linear.config]"));
    std::vector<PlannedNode> nodes;
    for (const NodeId id : graph_.order()) nodes.push_back(planned(id));
    return nodes;
  }

 private:
  void take(const Rule& rule, const Position& position) {
    const std::vector<NodeId> nodes =
        select_nodes(graph_, by_, rule.key, position, path_, problems_);
    if (nodes.empty()) {
      check_config(rule);
      return;
    }
    int usable = 0, free = 0;
    std::string owner;
    for (const NodeId id : nodes) {
      const Node& node = graph_.node(id);
      const OpRecord* op = op_of(graph_, node);
      if (op->operands.empty()) continue;
      ++usable;
      if (auto known = taken_.find(id); known != taken_.end()) {
        owner = known->second.rule;
        continue;
      }
      ++free;
      PlannedNode entry = parsed(rule, id, *op);
      claim_module(node, entry);
      taken_[id] = std::move(entry);
    }
    const std::string inner = path_ + "." + rule.key;
    if (usable == 0)
      problems_.add(Error(position, inner,
                          fmt::format("'{}' has no operand worth quantising",
                                      mase_op(graph_, graph_.node(nodes.front())))));
    else if (free == 0)
      problems_.add(Error(position, inner,
                          fmt::format("every node it matches is already taken by '{}'", owner),
                          "the first rule that matches wins"));
  }

  void give_default(const Rule& rule) {
    if (means_none(rule.config["name"]) && rule.config.as_dict().contains("name")) return;
    check_config(rule);
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      const OpRecord* op = op_of(graph_, node);
      if (!op || op->operands.empty() || taken_.count(id)) continue;
      if (node.kind == NodeKind::call_module && owners_.count(node.target)) continue;
      taken_[id] = parsed(rule, id, *op);
    }
  }

  // A config that no node takes is still read, so that its own mistakes are told too.
  void check_config(const Rule& rule) {
    if (!rule.config.is_dict() || !rule.config.as_dict().contains("name") ||
        !rule.config["name"].is_string() || means_none(rule.config["name"]))
      return;
    const std::string& format = rule.config["name"].as_string();
    if (!Registry<FormatRecord>::instance().find(format))
      add_once(Error(rule.config["name"].position(), rule.path + ".name",
                     fmt::format("unknown format '{}'", printable(format)),
                     suggestion(format, Registry<FormatRecord>::instance().names()))
                   .as(Mistake::unknown_name));
  }

  PlannedNode parsed(const Rule& rule, NodeId id, const OpRecord& op) {
    PlannedNode entry{id, rule.key, {}, ""};
    Problems found;
    entry.quantization =
        parse_quantization(config_for_op(rule.config, op), operand_rules(op), rule.path, found);
    if (!entry.quantization.backward.empty() && !op.product)
      found.add(Error(rule.config["backward"].position(), rule.path + ".backward",
                      fmt::format("'{}' does not quantise its backward pass", op.name),
                      "only layers that multiply by a weight do"));
    // Blocks of a convolution's backward pass would run over the positions, not over the channels.
    if (op.product && op.product->channel_axis != -1)
      for (const auto& [operand, quantizer] : entry.quantization.backward)
        if (!quantizer->elementwise)
          found.add(Error(rule.config["backward"].position(), rule.path + ".backward",
                          fmt::format("{} of '{}' cannot take {} in the backward pass", operand,
                                      op.name, quantizer->format),
                          "take a format that rounds each value by itself"));
    if (graph_.node(id).kind != NodeKind::call_module)
      for (const auto& [operand, quantizer] : entry.quantization.operands)
        if (quantizer->learned)
          found.add(Error(rule.config.position(), rule.path,
                          fmt::format("node '{}' is a function: it cannot learn {}_{}",
                                      graph_.node(id).name, operand, quantizer->learned->name),
                          "only layers keep parameters"));
    check_fit(rule, id, entry.quantization, found);
    for (const Error& error : found.errors()) add_once(error);
    if (!entry.changes()) entry.reason = fmt::format("rule '{}' says NA", rule.key);
    return entry;
  }

  // Lists of numbers have one for every group of the tensor they are for.
  void check_fit(const Rule& rule, NodeId id, const Quantization& quantization, Problems& found) {
    if (quantization.operands.empty()) return;
    if (shapes_.empty()) shapes_ = infer_shapes(graph_, 2);
    const Node& node = graph_.node(id);
    const auto check = [&](const std::string& operand, const Shape& shape) {
      const Quantizer* quantizer = quantization.find(operand);
      if (!quantizer) return;
      if (const auto problem = misfit(*quantizer, shape))
        found.add(Error(rule.config.position(), rule.path,
                        fmt::format("{} of node '{}': {}", operand, node.name, *problem),
                        "give one number per group, or take the node by name"));
    };
    if (const Module* module = graph_.module_of(node))
      for (const auto& [name, tensor] : module->parameters) check(name, tensor.shape());
    const std::vector<NodeId> inputs = graph_.inputs_of(id);
    for (size_t i = 0; i < inputs.size(); ++i)
      check(operand_of_input(graph_, node, i), shapes_[static_cast<size_t>(inputs[i])]);
    check("data_out", shapes_[static_cast<size_t>(id)]);
  }

  // A module has one quantisation: calls of a shared one must agree.
  void claim_module(const Node& node, const PlannedNode& entry) {
    if (node.kind != NodeKind::call_module) return;
    const auto [owner, first] = owners_.emplace(node.target, entry.node);
    if (first) return;
    const PlannedNode& other = taken_.at(owner->second);
    if (other.quantization.config == entry.quantization.config) return;
    problems_.add(Error(
        entry.quantization.config.position(), path_ + "." + entry.rule,
        fmt::format("node '{}' shares its layer with '{}', which rule '{}' quantises otherwise",
                    node.name, graph_.node(other.node).name, other.rule)));
  }

  void add_once(const Error& error) {
    if (told_.insert(error.what()).second) problems_.add(error);
  }

  PlannedNode planned(NodeId id) const {
    const Node& node = graph_.node(id);
    if (auto known = taken_.find(id); known != taken_.end()) return known->second;
    PlannedNode entry{id, "", {}, ""};
    const OpRecord* op = op_of(graph_, node);
    if (node.kind == NodeKind::call_module) {
      if (auto owner = owners_.find(node.target); owner != owners_.end()) {
        entry = taken_.at(owner->second);  // another call of a layer that a rule takes
        entry.node = id;
        return entry;
      }
    }
    if (!op)
      entry.reason = "does no arithmetic";
    else if (op->operands.empty())
      entry.reason = fmt::format("'{}' has no operand worth quantising", op->name);
    else
      entry.reason = fmt::format("no rule for {} '{}', and the default is NA",
                                 by_ == SelectBy::type ? "op" : "node",
                                 by_ == SelectBy::type ? op->name : node.name);
    return entry;
  }

  const Graph& graph_;
  const Value& args_;
  const std::string& path_;
  Problems& problems_;
  SelectBy by_;
  std::map<NodeId, PlannedNode> taken_;
  std::map<std::string, NodeId> owners_;  // the first claimed call of each module
  std::set<std::string> told_;
  std::vector<Shape> shapes_;  // of every node, for a batch of two
};

// Numbers that activations learn start from what the network gives on samples, if there are any;
// else training finds them from its first batch.
void start_activations(Graph& graph, const Graph& before, const PassContext& context) {
  if (!has_samples(before, context)) return;
  std::map<NodeId, std::vector<std::pair<const LearnedNumber*, Tensor*>>> wanted;
  std::vector<NodeId> sources;
  for (const NodeId id : graph.order()) {
    Module* module = graph.module_of(graph.node(id));
    if (!module) continue;
    for (const LearnedOperand& learned : learned_operands(*module)) {
      Tensor* number = module->find(learned.parameter);
      if (!is_activation(learned.operand) || number->item(0) != 0) continue;
      const NodeId source = learned.operand == "data_out" ? id : graph.inputs_of(id).front();
      if (!wanted.count(source)) sources.push_back(source);
      wanted[source].emplace_back(learned.quantizer->learned.get(), number);
    }
  }
  constexpr int64_t rows = 256;
  if (sources.empty()) return;
  observe_nodes(
      before, sample_inputs(before, context, rows), sources,
      [&](NodeId node, const Tensor& result) {
        for (const auto& [learned, number] : wanted[node])
          learned->start(result.data<float>(), result.shape(), number->mutable_data<float>());
      },
      rows);
}

}  // namespace

Value config_for_op(const Value& config, const OpRecord& op) {
  if (!config.is_dict()) return config;
  const std::vector<std::string> operands = operand_rules(op).prefixes();
  const std::set<std::string> known = all_operands();
  Dict kept;
  for (const auto& [key, value] : config.as_dict()) {
    const auto belongs = [&, &k = key](const std::string& operand) {
      return starts_with(k, operand + "_");
    };
    const bool foreign = std::any_of(known.begin(), known.end(), belongs) &&
                         std::none_of(operands.begin(), operands.end(), belongs);
    if (!foreign) kept.set(key, value);
  }
  Value filtered(std::move(kept));
  filtered.set_position(config.position());
  return filtered;
}

Schema quantize_schema() {
  return {.fields = {by_field(),
                     table_field("default", "the rule of every node that no other rule names")},
          .open = true};
}

std::vector<PlannedNode> plan_quantize(const Graph& graph, const Value& args,
                                       const std::string& path, Problems& problems) {
  return Planner(graph, args, path, problems).plan();
}

PassResult apply_quantize_plan(Graph& graph, const std::vector<PlannedNode>& plan,
                               const PassContext& context) {
  const Graph before_pass = graph;
  Dict nodes;
  bool changed = false;
  for (const PlannedNode& entry : plan) {
    if (!entry.changes()) continue;
    Node& node = graph.node(entry.node);
    const Value before = graph.quantization_of(node).config;
    const std::string old_class = class_text(graph, node);
    Module* module = graph.module_of(node);
    (module ? module->quantization : node.quantization) = entry.quantization;
    if (module) fit_learned_parameters(*module);
    update_operand_metadata(graph, node);
    changed = changed || !(before == entry.quantization.config);
    nodes.set(node.name, Dict{{"from", old_class},
                              {"to", class_text(graph, node)},
                              {"rule", entry.rule},
                              {"formats", format_text(entry.quantization)}});
  }
  start_activations(graph, before_pass, context);
  return {Dict{{"quantized", nodes.size()}, {"nodes", nodes}}, changed};
}

std::string describe_quantize_plan(const Graph& graph, const std::any& plan) {
  Table table({"Node name", "Mase op", "Rule", "Becomes", "Formats, or why it is left alone"});
  for (const PlannedNode& entry : std::any_cast<const std::vector<PlannedNode>&>(plan)) {
    const Node& node = graph.node(entry.node);
    std::string becomes = "-";
    if (entry.changes()) {
      const FormatRecord* format =
          Registry<FormatRecord>::instance().find(entry.quantization.config["name"].as_string());
      const OpRecord* op = op_of(graph, node);
      becomes = graph.module_of(node) ? op->class_name + format->class_suffix
                                      : op->name + "_" + format->name;
    }
    table.add({node.name, mase_op(graph, node), entry.rule.empty() ? "-" : entry.rule, becomes,
               entry.changes() ? format_text(entry.quantization) : entry.reason});
  }
  return table.str(TableStyle::orgtbl);
}

}  // namespace mase
