// SPDX-License-Identifier: Apache-2.0
#include "mase/run/resume.h"

#include <filesystem>
#include <set>

#include "mase/base/text.h"

namespace mase {

Settings resumed_settings(const RunFolder& run, const Value& values, const Dict& anew) {
  static const std::set<std::string> free = {"threads", "checkpoint_seconds", "checkpoint_steps",
                                             "max_epochs", "max_steps"};
  for (const auto& [name, value] : anew)
    if (!free.count(name))
      throw Error("resume", fmt::format("a resumed run keeps its own '{}'", printable(name)),
                  "to change options, start a new run that loads " + run.checkpoint("last"));
  Settings settings;
  settings.values = values;
  for (const Value& row : run.record()["options"].as_list("options")) {
    const std::string shown = row["name"].as_string(), name = shown == "load_name" ? "load" : shown;
    OptionRow copy{shown, row["default"], row["config"], row["flag"], row["effective"]};
    if (const Value* given = anew.find(name)) copy.flag = copy.effective = *given;
    if (name != "resume") settings.values[name] = copy.effective;
    settings.rows.push_back(std::move(copy));
  }
  if (settings.has("config")) {
    settings.config_path = settings["config"].as_string();
    // The graph was saved after its passes; the file is needed only if that never happened.
    if (!std::filesystem::exists(run.initial_graph()))
      settings.config = read_toml(settings.config_path);
  }
  return settings;
}

void take_up(ExperimentSpec& spec, const RunFolder& run) {
  if (!std::filesystem::exists(run.initial_graph())) return;
  spec.network.model.clear();
  spec.network.load = run.initial_graph();
  spec.network.load_type = CheckpointType::mz;
  spec.network.load_partial = false;
  spec.passes = {};
}

}  // namespace mase
