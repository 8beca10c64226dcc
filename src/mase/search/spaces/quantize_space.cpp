// SPDX-License-Identifier: Apache-2.0
#include "mase/search/spaces/quantize_space.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "mase/base/text.h"
#include "mase/ir/layer_text.h"

namespace mase::search {
namespace {

// The key of the format's own schema: "weight_frac_width" -> "frac_width".
std::string without_operand(const std::string& key, const std::vector<std::string>& operands) {
  for (const std::string& operand : operands)
    if (starts_with(key, operand + "_")) return key.substr(operand.size() + 1);
  return key;
}

}  // namespace

std::vector<std::string> QuantizeSpace::keys() {
  std::set<std::string> operands, all = {"name", "bypass", "backward"};
  for (const OpRecord* op : Registry<OpRecord>::instance().all())
    for (const std::string& prefix : operand_rules(*op).prefixes()) operands.insert(prefix);
  for (const FormatRecord* format : Registry<FormatRecord>::instance().all())
    for (const std::string& operand : operands)
      for (const Field& field : format->schema.fields) all.insert(operand + "_" + field.name);
  return {all.begin(), all.end()};
}

QuantizeSpace::QuantizeSpace(const SpaceSetup& setup, Problems& problems) {
  const Graph& graph = setup.graph;
  const auto takes = [&](const Node& node) { return !op_of(graph, node)->operands.empty(); };
  for (const SeededNode& seeded : seeded_nodes(setup, takes, "can be quantised", unused_, problems))
    add_layer(graph, seeded.node, seeded.config, seeded.path, problems);
  if (problems.empty()) check(graph, setup.path, problems);
}

void QuantizeSpace::add_layer(const Graph& graph, NodeId id, const Value& given,
                              const std::string& path, Problems& problems) {
  const Node& node = graph.node(id);
  const OpRecord& op = *op_of(graph, node);
  const Value config = config_for_op(given, op);
  const Value* names = config.as_dict().find("name");
  const auto add_once = [&](const Error& error) {  // one table may be that of many layers
    if (problems.empty() || problems.errors().back().place() != error.place()) problems.add(error);
  };
  const char* formats_wanted = "say which formats: name = [\"integer\"]";
  if (!names)
    return add_once(Error(given.position(), path, "'name' is missing", formats_wanted)
                        .as(Mistake::missing_key));
  const List formats = choices_of(*names);
  if (formats.empty())
    return add_once(Error(names->position(), path + ".name", "the list is empty", formats_wanted));
  if (formats.size() == 1 && means_none(formats[0])) return;
  Layer layer{node.name, {}};
  const std::string prefix = node.name + "/config/";
  Key name{"name", formats.size() == 1 ? formats[0] : Value(), -1, {}};
  if (formats.size() > 1)
    name.parameter = static_cast<int>(
        space_.add({prefix + "name", Distribution::categorical(formats, path + ".name")}));
  layer.keys.push_back(name);
  for (const auto& [key, value] : config.as_dict()) {
    if (key == "name") continue;
    const List choices = choices_of(value);
    if (choices.empty()) {
      problems.add(Error(value.position(), path + "." + key, "the list is empty",
                         "give at least one value, or leave the key out"));
      continue;
    }
    Key entry{key, choices[0], -1, {}};
    // The key exists only with formats that know it, and is searched with those that heed it: with
    // a binary number every width is the same configuration.
    std::vector<double> when;
    std::vector<std::string> known;
    for (size_t f = 0; f < formats.size(); ++f) {
      if (!formats[f].is_string() || means_none(formats[f])) continue;
      const FormatRecord* format = Registry<FormatRecord>::instance().find(formats[f].as_string());
      const Field* field =
          format ? format->schema.find(without_operand(key, operand_rules(op).prefixes()))
                 : nullptr;
      if (!field) continue;
      known.push_back(formats[f].as_string());
      if (field->idle) continue;
      when.push_back(static_cast<double>(f));
    }
    const bool searched = choices.size() > 1 && (known.empty() || !when.empty());
    if (formats.size() > 1) {
      entry.formats = known;
      if (known.empty()) {
        problems.add(Error(value.position(), path, fmt::format("unknown key '{}'", printable(key)),
                           "no format of 'name' has it")
                         .as(Mistake::unknown_key));
        continue;
      }
    }
    if (searched) {
      Parameter parameter{prefix + key, Distribution::categorical(choices, path + "." + key)};
      if (formats.size() > 1) {
        parameter.parent = name.parameter;
        parameter.when = when;
      }
      entry.parameter = static_cast<int>(space_.add(std::move(parameter)));
    }
    layer.keys.push_back(std::move(entry));
  }
  layers_.push_back(std::move(layer));
}

Dict QuantizeSpace::sampled_config(const Point& point) const {
  Dict all;
  for (const Layer& layer : layers_) {
    Dict config;
    std::string format;
    for (const Key& key : layer.keys) {
      if (!key.formats.empty() &&
          std::find(key.formats.begin(), key.formats.end(), format) == key.formats.end())
        continue;
      Value value = key.fixed;
      const auto index = static_cast<size_t>(std::max(key.parameter, 0));
      if (key.parameter >= 0 && !std::isnan(point[index]))
        value = space_.parameters()[index].distribution.external(point[index]);
      if (key.name == "name") {
        if (means_none(value)) break;  // this layer stays as it is
        format = value.as_string(layer.node + ".name");
      }
      config.set(key.name, std::move(value));
    }
    // A fraction that is not given is half of the width.
    for (auto& [key, value] : config) {
      if (!ends_with(key, "_frac_width") || !means_none(value)) continue;
      const Value* width = config.find(replace_all(key, "_frac_width", "_width"));
      if (width && width->is_int()) value = width->as_int() / 2;
    }
    if (!config.empty()) all.set(layer.node, Dict{{"config", std::move(config)}});
  }
  return all;
}

Value QuantizeSpace::pass_arguments(const Point& point) const {
  Dict arguments{{"by", "name"}, {"default", Dict{{"config", Dict{{"name", "NA"}}}}}};
  for (auto& [node, rule] : sampled_config(point)) arguments.set(node, rule);
  return arguments;
}

List QuantizeSpace::passes(const Point& point) const {
  Value arguments = pass_arguments(point);
  if (arguments.as_dict().size() == 2) return {};  // every layer stays as it is
  Dict call{{"name", "quantize"}};
  for (const auto& [key, value] : arguments.as_dict()) call.add(key, value);
  return {Value(std::move(call))};
}

void QuantizeSpace::apply(const Point& point, const CandidateUse&, Candidate& candidate) const {
  const std::vector<PlannedNode> nodes = plan(candidate.graph, point);
  if (!nodes.empty()) apply_quantize_plan(candidate.graph, nodes, PassContext());
}

std::vector<PlannedNode> QuantizeSpace::plan(const Graph& graph, const Point& point) const {
  const Value arguments = pass_arguments(point);
  if (arguments.as_dict().size() == 2) return {};  // every layer stays as it is
  Problems problems;
  std::vector<PlannedNode> nodes = plan_quantize(graph, arguments, "search", problems);
  problems.throw_if_any();
  return nodes;
}

// Every value of every key is tried once, so that a mistake is told before the search begins.
void QuantizeSpace::check(const Graph& graph, const std::string& path, Problems& problems) const {
  std::set<std::string> told;
  for (const Point& point : covering_points(space_)) {
    const Value arguments = pass_arguments(point);
    if (arguments.as_dict().size() == 2) continue;
    Problems found;
    plan_quantize(graph, arguments, path, found);
    for (const Error& error : found.errors())
      if (told.insert(error.what()).second) problems.add(error);
  }
}

}  // namespace mase::search
