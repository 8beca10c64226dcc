// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/options.h"

#include <set>

#include "mase/run/set_option.h"

namespace mase {

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
  std::set<std::string> keys, tables;
  for (const CommandRecord* other : Registry<CommandRecord>::instance().all()) {
    if (!other->options.find("config")) continue;
    for (const Field& field : other->options.fields) {
      keys.insert(field.name);
      keys.insert(field.aliases.begin(), field.aliases.end());
    }
    for (const Positional& positional : other->positionals) keys.insert(positional.name);
    tables.insert(other->tables.begin(), other->tables.end());
  }
  request.keys_elsewhere.assign(keys.begin(), keys.end());
  request.tables_elsewhere.assign(tables.begin(), tables.end());
  return read_settings(request, problems);
}

Settings merge_settings(const std::string& command, const Arguments& arguments) {
  Problems problems;
  Settings settings = merge_settings(command, arguments, problems);
  problems.throw_if_any();
  return settings;
}

}  // namespace mase
