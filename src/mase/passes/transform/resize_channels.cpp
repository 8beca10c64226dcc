// SPDX-License-Identifier: Apache-2.0
// resize_channels: layers with more or fewer outputs, everything behind them following.
//   Linear(16, 32) -> Linear(32, 5)  =>  Linear(16, 64) -> Linear(64, 5)
#include <cmath>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/channels.h"
#include "mase/passes/metadata.h"
#include "mase/passes/output.h"

namespace mase::resize_channels_pass {
namespace {

const Schema layer_schema = {{
    // The labs' name for what changes; inputs follow the layers that feed them.
    text_field("name", {}, {}, {"output_only", "both"}),
    number_field("channel_multiplier").from(0),
    integer_field("channels").from(1),
}};

std::map<std::string, int64_t> wanted(const Graph& graph, const Value& args,
                                      const std::string& path, Problems& problems) {
  std::map<std::string, int64_t> outputs;
  for (const auto& [key, rule] : args.as_dict()) {
    if (key == "keep_weights") continue;
    const std::string inner = path + "." + key;
    const Node* node = graph.find(key);
    if (!node || !rule.is_dict() || !rule.as_dict().contains("config")) {
      std::vector<std::string> names;
      for (const NodeId id : graph.order()) names.push_back(graph.node(id).name);
      problems.add(
          node ? Error(rule.position(), inner, "'config' is missing",
                       "write [" + inner + ".config] with channel_multiplier = 2")
               : Error(rule.position(), path,
                       fmt::format("'{}' is no node of {}", printable(key), printable(graph.name)),
                       suggestion(key, names)));
      continue;
    }
    const Value config = validate(rule["config"], layer_schema, inner + ".config", problems);
    const bool by_factor = config["channel_multiplier"].is_number();
    if (by_factor == config["channels"].is_int()) {
      problems.add(Error(rule.position(), inner + ".config",
                         "says neither or both of channel_multiplier and channels", "give one"));
      continue;
    }
    const auto old = static_cast<double>(output_channels(graph, *node));
    outputs[key] = by_factor ? std::llround(old * config["channel_multiplier"].as_double())
                             : config["channels"].as_int();
  }
  return outputs;
}

void check(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  const size_t before = problems.errors().size();
  const auto outputs = wanted(graph, args, path, problems);
  if (problems.errors().size() != before) return;
  try {
    resize_channels(graph, outputs);
  } catch (const Error& error) {
    problems.add(
        Error(args.position(), path, error.place() + ": " + error.cause(), error.remedy()));
  }
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  Problems problems;
  const auto outputs = wanted(graph, args, "resize_channels", problems);
  problems.throw_if_any();
  ResizeOptions options;
  options.keep_weights = args["keep_weights"].as_bool();
  options.seed = context.seed;
  Graph resized = resize_channels(graph, outputs, options);
  Table table({"Layer", "Before", "After"});
  List rows;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const std::string before = layer_text(graph, node), after = layer_text(resized, node);
    if (before == after) continue;
    table.add({node.name, before, after});
    rows.push_back(Dict{{"node", node.name}, {"before", before}, {"after", after}});
  }
  if (!rows.empty()) print(context, table.str(TableStyle::orgtbl));
  const bool changed = !rows.empty();
  const int64_t parameters = graph.parameter_count();
  graph = std::move(resized);
  return {Dict{{"layers", std::move(rows)},
               {"parameters_before", parameters},
               {"parameters", graph.parameter_count()}},
          changed};
}

const Register<PassRecord> registered{{
    .name = "resize_channels",
    .aliases = {"resize_channels_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Gives layers more or fewer channels",
    .help = "[passes.resize_channels.NODE.config] channel_multiplier = 2 or channels = 64, one "
            "table for each\nlayer. Layers behind them follow. A trained network keeps what it "
            "learned: channels are repeated\nand share their outgoing weights, or those with the "
            "smallest weights are left out.",
    .schema = {.fields = {boolean_field("keep_weights", "false: layers that change begin anew",
                                        true)},
               .open = true},
    .check = check,
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::resize_channels_pass
