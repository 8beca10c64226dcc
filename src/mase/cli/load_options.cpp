// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/load_options.h"

#include <map>

#include "mase/base/text.h"
#include "mase/models/model.h"

namespace mase {
namespace {

constexpr const char* group = "General options";

std::string named(const std::vector<std::string>& names) {
  constexpr size_t most = 8;
  std::vector<std::string> shown;
  for (const std::string& name : names)
    if (shown.size() < most) shown.push_back(printable(name));
  if (names.size() > most) shown.push_back(fmt::format("... ({} in all)", names.size()));
  return join(shown, ", ");
}

}  // namespace

std::vector<Field> load_options() {
  return {
      {.name = "load",
       .type = FieldType::text,
       .help = "a checkpoint or a saved graph to start from",
       .group = group},
      {.name = "load_type",
       .type = FieldType::text,
       .help = "its kind (default: found out from the content)",
       .choices = checkpoint_type_names(),
       .group = group},
      {.name = "load_partial",
       .type = FieldType::boolean,
       .default_value = false,
       .help = "take the tensors that fit, and say which",
       .group = group},
  };
}

std::string guess_model(const TensorTable& tensors) {
  std::map<std::string, Shape> given;
  for (const auto& [name, tensor] : tensors) given[name] = tensor.shape();
  for (const ModelRecord* model : Registry<ModelRecord>::instance().all()) {
    try {
      std::map<std::string, Shape> wanted;
      for (const auto& [name, tensor] : state_dict(model->build({}))) wanted[name] = tensor.shape();
      if (!wanted.empty() && wanted == given) return model->name;
    } catch (const Error&) {
      continue;  // a network that needs to be told its sizes
    }
  }
  return "";
}

Loaded load_network(Graph& graph, const Value& values) {
  Loaded loaded;
  if (!values["load"].is_string()) return loaded;
  const std::string& path = values["load"].as_string();
  std::optional<CheckpointType> type;
  if (values["load_type"].is_string())
    type = checkpoint_type_from_name(values["load_type"].as_string());
  const bool partial = values["load_partial"].is_bool() && values["load_partial"].as_bool();
  loaded.checkpoint = load_checkpoint(path, type);
  if (loaded.checkpoint->graph && !partial) {
    if (!graph.name.empty() && loaded.checkpoint->graph->name != graph.name)
      loaded.notes.push_back(fmt::format("{} holds the network {}: it is used, not {}", path,
                                         printable(loaded.checkpoint->graph->name), graph.name));
    graph = *loaded.checkpoint->graph;
    for (const auto& [name, tensor] : loaded.checkpoint->tensors)
      loaded.report.taken.push_back(name);
    return loaded;
  }
  loaded.report = load_into(graph, *loaded.checkpoint, path, partial, guess_model);
  const LoadReport& report = loaded.report;
  if (partial) {
    loaded.notes.push_back(fmt::format("took {} of the network's {} tensors from {}: {}",
                                       report.taken.size(), state_dict(graph).size(), path,
                                       named(report.taken)));
    if (!report.mismatched.empty())
      loaded.notes.push_back("left for their shape: " + named(report.mismatched));
    if (!report.missing.empty())
      loaded.notes.push_back("not in the checkpoint: " + named(report.missing));
    if (!report.unexpected.empty())
      loaded.notes.push_back("not in the network: " + named(report.unexpected));
  }
  return loaded;
}

}  // namespace mase
