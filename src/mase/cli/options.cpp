// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/options.h"

#include <algorithm>
#include <set>

#include "mase/base/text.h"
#include "mase/run/search/search_spec.h"
#include "mase/run/set_option.h"

namespace mase {

KnownKeys keys_of_all_commands() {
  std::set<std::string> keys, tables;
  for (const CommandRecord* command : Registry<CommandRecord>::instance().all()) {
    if (command->tables.empty()) continue;  // of a file it takes the passes at most
    for (const Field& field : command->options.fields) {
      keys.insert(field.name);
      keys.insert(field.aliases.begin(), field.aliases.end());
    }
    for (const Positional& positional : command->positionals) keys.insert(positional.name);
    tables.insert(command->tables.begin(), command->tables.end());
  }
  return {{keys.begin(), keys.end()}, {tables.begin(), tables.end()}};
}

Positional network_word(bool required) {
  return {.name = "model",
          .help =
              "a built-in network (ch --info model), a .toml that describes one, or a file that "
              "holds one (.mz, .ckpt, .onnx, ...)",
          .required = required,
          .option = true};
}

Positional dataset_word(const std::string& help) {
  return {.name = "dataset",
          .help = help.empty() ? "a data set (ch data list), or the path of one" : help,
          .required = false,
          .option = true};
}

Settings merge_settings(const std::string& command_name, const Arguments& arguments,
                        Problems& problems) {
  const CommandRecord& command = Registry<CommandRecord>::instance().get(command_name);
  SettingsRequest request;
  request.options = command.options;
  for (const Positional& positional : command.positionals)
    request.positionals.push_back(positional.name);
  for (const std::string& name : arguments.typed) request.given[name] = arguments[name];
  if (arguments.was_typed("config")) request.config_path = arguments["config"].as_string();
  if (!command.tables.empty() && arguments.was_typed("set"))
    request.changes = set_table(arguments["set"]);
  request.elsewhere = keys_of_all_commands();
  Settings settings = read_settings(request, problems);
  if (!std::count(command.tables.begin(), command.tables.end(), "search"))
    check_search_keys(settings, problems);
  return settings;
}

void check_typed(const Arguments& arguments, const std::string& command, const std::string& action,
                 const std::set<std::string>& useful) {
  const std::vector<Positional>& words =
      Registry<CommandRecord>::instance().get(command).positionals;
  for (const std::string& name : arguments.typed) {
    if (name == "action" || useful.count(name) > 0) continue;
    const bool word = std::any_of(words.begin(), words.end(), [&](const Positional& positional) {
      return positional.name == name;
    });
    throw Error(fmt::format("ch {} {}", command, action),
                fmt::format("takes no {}", word ? "'" + printable(arguments[name].as_string()) + "'"
                                                : "--" + replace_all(name, "_", "-")),
                "leave it out");
  }
}

Settings merge_settings(const std::string& command, const Arguments& arguments) {
  Problems problems;
  Settings settings = merge_settings(command, arguments, problems);
  problems.throw_if_any();
  return settings;
}

}  // namespace mase
