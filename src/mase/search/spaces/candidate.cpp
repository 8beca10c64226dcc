// SPDX-License-Identifier: Apache-2.0
#include "mase/search/spaces/candidate.h"

#include <algorithm>
#include <map>
#include <set>

#include "mase/base/text.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/select.h"

namespace mase::search {
namespace {

const Value* config_in(const Value& seed, const std::string& key) {
  const Value* rule = seed.as_dict().find(key);
  return rule && rule->is_dict() ? rule->as_dict().find("config") : nullptr;
}

// Every table has a config, and is called after something that is there.
void check_seeds(const SpaceSetup& setup, std::vector<std::string>& unused, Problems& problems) {
  std::set<std::string> nodes, ops;
  for (const NodeId id : setup.graph.order()) nodes.insert(setup.graph.node(id).name);
  for (const OpRecord* op : Registry<OpRecord>::instance().all()) ops.insert(op->name);
  const bool by_type = setup.by == "type";
  for (const auto& [key, rule] : setup.seed.as_dict()) {
    const std::string inner = setup.path + "." + key;
    if (!rule.is_dict() || !rule.as_dict().contains("config")) {
      problems.add(
          Error(rule.position(), inner, "'config' is missing", "write [" + inner + ".config]"));
      continue;
    }
    if (key == "default" || setup.by == "regex_name") continue;
    const std::set<std::string>& wanted = by_type ? ops : nodes;
    const std::set<std::string>& other = by_type ? nodes : ops;
    if (wanted.count(key)) continue;
    // MASE's files carry seeds for both ways of naming layers, and those of the labs seeds of the
    // seq_blocks of another network. In a network that has such layers it is a mistake.
    const bool has_blocks = std::any_of(nodes.begin(), nodes.end(), [](const std::string& name) {
      return starts_with(name, "seq_");
    });
    if (other.count(key) || (starts_with(key, "seq_") && by_type)) {
      unused.push_back(
          fmt::format("seed '{}' is not used: layers are chosen by {}", printable(key), setup.by));
      continue;
    }
    if (starts_with(key, "seq_") && !has_blocks) {
      unused.push_back(fmt::format("seed '{}' is not used: {} has no such layer", printable(key),
                                   printable(setup.graph.name)));
      continue;
    }
    problems.add(Error(rule.position(), setup.path,
                       fmt::format("'{}' is no {} of {}", printable(key), by_type ? "op" : "node",
                                   printable(setup.graph.name)),
                       suggestion(key, {wanted.begin(), wanted.end()})));
  }
}

}  // namespace

void check_seed_keys(const Value& seed, const std::string& path, Problems& problems) {
  std::set<std::string> all;
  for (const SpaceRecord* space : Registry<SpaceRecord>::instance().all())
    for (const std::string& key : space->keys()) all.insert(key);
  const std::vector<std::string> known(all.begin(), all.end());
  const auto unknown = [&](const std::string& key, const Value& value, const std::string& where,
                           const std::vector<std::string>& names) {
    problems.add(Error(value.position(), where, fmt::format("unknown key '{}'", printable(key)),
                       suggestion(key, names))
                     .as(Mistake::unknown_key));
  };
  for (const auto& [name, rule] : seed.as_dict()) {
    const std::string inner = path + "." + name;
    if (!rule.is_dict()) {
      unknown(name, rule, path, {});
      continue;
    }
    for (const auto& [key, config] : rule.as_dict())
      if (key != "config") unknown(key, config, inner, {"config"});
    if (!rule["config"].is_dict()) continue;
    for (const auto& [key, value] : rule["config"].as_dict())
      if (!all.count(key)) unknown(key, value, inner + ".config", known);
  }
}

List choices_of(const Value& value) {
  const List all = value.is_list() ? value.as_list() : List{value};
  List distinct;
  for (const Value& one : all)
    if (std::find(distinct.begin(), distinct.end(), one) == distinct.end()) distinct.push_back(one);
  return distinct;
}

std::vector<SeededNode> seeded_nodes(const SpaceSetup& setup,
                                     const std::function<bool(const Node& node)>& takes,
                                     const std::string& about, std::vector<std::string>& unused,
                                     Problems& problems) {
  check_seeds(setup, unused, problems);
  std::map<NodeId, std::string> matched;  // by expression: the first that matches
  if (setup.by == "regex_name")
    for (const auto& [key, rule] : setup.seed.as_dict())
      if (key != "default")
        for (const NodeId id : select_nodes(setup.graph, SelectBy::regex_name, key, rule.position(),
                                            setup.path, problems))
          matched.emplace(id, key);
  std::vector<SeededNode> found;
  for (const NodeId id : setup.graph.order()) {
    const Node& node = setup.graph.node(id);
    const OpRecord* op = op_of(setup.graph, node);
    if (!op) continue;
    std::string rule = setup.by == "type" ? op->name : node.name;
    if (setup.by == "regex_name") rule = matched.count(id) ? matched[id] : "default";
    const Value* config = config_in(setup.seed, rule);
    const bool named = config && setup.by == "name";
    if (!config) {
      rule = "default";
      config = config_in(setup.seed, rule);
    }
    if (!config || !config->is_dict()) continue;
    if (takes(node))
      found.push_back({id, *config, setup.path + "." + rule + ".config", named});
    else if (named)
      problems.add(Error(config->position(), setup.path + "." + rule,
                         fmt::format("{} has nothing to choose: it is no layer that {}",
                                     node_target(setup.graph, node), about)));
  }
  return found;
}

CandidateSpace::CandidateSpace(std::vector<std::unique_ptr<SpacePart>> parts)
    : parts_(std::move(parts)) {
  for (const auto& part : parts_) {
    const auto first = static_cast<int>(space_.dimensions());
    first_.push_back(space_.dimensions());
    for (Parameter parameter : part->space().parameters()) {
      if (parameter.parent >= 0) parameter.parent += first;
      space_.add(std::move(parameter));
    }
  }
}

Point CandidateSpace::own(size_t part, const Point& point) const {
  const auto first = point.begin() + static_cast<int64_t>(first_[part]);
  return {first, first + static_cast<int64_t>(parts_[part]->space().dimensions())};
}

Candidate CandidateSpace::candidate(const Graph& graph, const Point& point,
                                    const CandidateUse& use) const {
  Candidate result{graph, {}};
  if (!use.warm_start)
    for (auto& [path, module] : result.graph.modules()) {
      const Module fresh = make_module(module.op, module.attributes, use.seed, path);
      for (const auto& [name, tensor] : fresh.parameters) *module.find(name) = tensor;
      for (const auto& [name, tensor] : fresh.buffers) *module.find(name) = tensor;
    }
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i]->apply(own(i, point), use, result);
  return result;
}

Value CandidateSpace::sampled_config(const Point& point) const {
  Dict all;
  for (size_t i = 0; i < parts_.size(); ++i)
    for (auto& [key, value] : parts_[i]->sampled_config(own(i, point))) all.set(key, value);
  return all;
}

List CandidateSpace::passes(const Point& point) const {
  List all;
  for (size_t i = 0; i < parts_.size(); ++i)
    for (const Value& call : parts_[i]->passes(own(i, point))) all.push_back(call);
  return all;
}

std::vector<std::string> CandidateSpace::unused() const {
  std::vector<std::string> all;
  for (const auto& part : parts_)
    all.insert(all.end(), part->unused().begin(), part->unused().end());
  return all;
}

}  // namespace mase::search
