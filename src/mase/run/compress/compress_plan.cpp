// SPDX-License-Identifier: Apache-2.0
#include "mase/run/compress/compress_plan.h"

#include <algorithm>
#include <set>

#include "mase/base/text.h"
#include "mase/formats/format.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/passes/select.h"
#include "mase/run/set_option.h"

namespace mase {
namespace {

constexpr const char* rounding = "rtn";
constexpr const char* training = "train";
constexpr const char* no_format = "none";  // weights stay as they are: for methods that prune

// Pieces between separators that stand in no brackets: "a=[1,2],b=3" is two.
std::vector<std::string> split_outside(const std::string& text, char separator) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == separator && depth <= 0)
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  return pieces;
}

struct Named {
  std::string name;
  Value settings = Dict{};
};

Named named(const std::string& text, const std::string& place) {
  Named result;
  const size_t colon = text.find(':');
  result.name = strip(text.substr(0, colon));
  if (result.name.empty())
    throw Error(place, fmt::format("'{}' names nothing", printable(text)), "write NAME:key=value");
  if (colon != std::string::npos) {
    std::vector<std::string> settings;
    for (const std::string& piece : split_outside(text.substr(colon + 1), ','))
      settings.push_back(strip(piece));
    result.settings = set_table(Value::of(settings), place);
  }
  return result;
}

CompressStep step_of(const std::string& text, int64_t calibration_rows) {
  const std::string place = "--methods";
  Named step = named(text, place);
  if (step.name == training) return {{training, std::move(step.settings), text}, true};
  const PassRecord* record = Registry<PassRecord>::instance().find(step.name);
  if (!record || record->pass_kind != PassKind::transform) {
    std::vector<std::string> known = {rounding, training};
    for (const PassRecord* pass : Registry<PassRecord>::instance().all())
      if (pass->pass_kind == PassKind::transform) known.push_back(pass->name);
    throw Error(place, fmt::format("'{}' is no pass that changes networks", printable(step.name)),
                suggestion(step.name, known))
        .as(Mistake::unknown_name);
  }
  if (record->schema.find("rows") && calibration_rows > 0 && step.settings["rows"].is_null())
    step.settings["rows"] = calibration_rows;
  return {{record->name, std::move(step.settings), text}};
}

}  // namespace

CompressFormat compress_format(const std::string& text) {
  const std::string place = "--formats";
  const Named format = named(text, place);
  if (format.name == no_format) {
    if (!format.settings.as_dict().empty())
      throw Error(place, fmt::format("'{}': no format has no keys", printable(text)));
    return {text, {}};
  }
  const FormatRecord& record = Registry<FormatRecord>::instance().get(format.name, place);
  Dict config{{"name", record.name}}, weight;
  bool of_weights = false, of_data = false;
  for (const auto& [key, value] : format.settings.as_dict()) {
    const bool says_operand = starts_with(key, "data_in_") || starts_with(key, "data_out_") ||
                              starts_with(key, "bias_") || starts_with(key, "weight_");
    config.set(says_operand ? key : "weight_" + key, value);
    if (!says_operand) weight.set(key, value);
    of_weights = of_weights || !says_operand || starts_with(key, "weight_");
    of_data = of_data || starts_with(key, "data_in_");
  }
  // An operand has a format where one of its keys is given.
  if (!of_weights)
    for (const Field& field : record.schema.fields)
      if (!field.default_value.is_null()) {
        config.set("weight_" + field.name, field.default_value);
        break;
      }
  config.set("weight_only", !of_data);
  if (of_weights) {
    Problems problems;
    Schema keys = record.schema;  // those with an operand in front are judged with the layers
    for (Field& field : keys.fields)
      field.required = field.required && !config.contains("weight_" + field.name);
    validate(Value(weight), keys, place + " " + text, problems);
    problems.throw_if_any();
  }
  return {text, std::move(config)};
}

CompressMethod compress_method(const std::string& text, int64_t calibration_rows) {
  const std::vector<std::string> words = split_outside(text, '+');
  const auto rtn = std::count_if(words.begin(), words.end(),
                                 [](const std::string& word) { return strip(word) == rounding; });
  if (rtn > 1)
    throw Error("--methods", fmt::format("'{}' rounds twice", printable(text)), "write rtn once");
  CompressMethod method{text};
  bool rounded = rtn == 0;
  for (const std::string& word : words) {
    if (strip(word) == rounding)
      rounded = true;
    else
      (rounded ? method.after : method.before).push_back(step_of(strip(word), calibration_rows));
  }
  return method;
}

std::vector<NodeId> compress_layers(const Graph& graph, const std::vector<std::string>& leave) {
  std::set<NodeId> left;
  if (!leave.empty()) {
    Problems problems;
    for (const NodeId id :
         select_nodes(graph, SelectBy::regex_name, Value::of(leave), "--leave", problems))
      left.insert(id);
    problems.throw_if_any();
  }
  std::vector<NodeId> layers;
  std::set<std::string> paths;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (graph.module_of(node) && op_of(graph, node)->multiplies_weights() && !left.count(id) &&
        paths.insert(node.target).second)
      layers.push_back(id);
  }
  if (layers.empty())
    throw Error(graph.name, "has no layer that multiplies by weights",
                leave.empty() ? "" : "leave fewer out with --leave");
  return layers;
}

std::optional<PassCall> compress_quantize_call(const Graph& graph,
                                               const std::vector<NodeId>& layers,
                                               const CompressFormat& format) {
  if (format.config.is_null()) return {};
  Dict args{{"by", "name"}};
  for (const NodeId id : layers) args.set(graph.node(id).name, Dict{{"config", format.config}});
  return PassCall{"quantize", std::move(args), format.text};
}

}  // namespace mase
