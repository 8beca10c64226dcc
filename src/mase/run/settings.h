// SPDX-License-Identifier: Apache-2.0
// The one reader of what a user wants: flags of a command line, keys of a TOML file, a dict of a
// notebook. As in MASE: default < top-level key of the file < what was given directly, which always
// wins, even where it repeats the default. A key or a table that nobody reads is an error.
#pragma once

#include <string>
#include <vector>

#include "mase/base/schema.h"

namespace mase {

struct OptionRow {
  std::string name;
  Value fallback, config, flag, effective;
};

// Files may serve several commands: keys and tables that others read are welcome.
struct KnownKeys {
  std::vector<std::string> keys = {}, tables = {};
};

struct Settings {
  Value values;                 // effective values by option name, positionals included
  std::vector<OptionRow> rows;  // for the table and the run record
  Value config;                 // the whole TOML file, null without one
  std::string config_path;
  KnownKeys elsewhere;
  std::vector<std::string> warnings;  // options that need a GPU or a service: what happens instead

  const Value& operator[](const std::string& name) const { return values[name]; }
  bool has(const std::string& name) const { return !values[name].is_null(); }
  // The value was typed or stands in the file.
  bool given(const std::string& name) const;
  Value rows_value() const;  // the "options" of run.json
  std::string toml() const;  // the effective configuration, tables of the file included
};

struct SettingsRequest {
  Schema options;
  std::vector<std::string> positionals = {};  // names that are no flags: "model", "dataset"
  Value given = Dict{};                       // what was typed, by name
  std::string config_path = {};               // a TOML file; empty: none
  Value changes = {};                         // of the file, by --set: as if they stood in it
  KnownKeys elsewhere = {};
};

// What is wrong is added to the problems, and everything else read, so that all mistakes of a file
// can be told at once. A file that cannot be read at all is an Error.
Settings read_settings(const SettingsRequest& request, Problems& problems);
Settings read_settings(const SettingsRequest& request);  // throws the problems

// The [passes] of a file that is read for them alone; what nobody knows in it is an error, and so
// is a file without them.
Value passes_of_file(const std::string& path, const KnownKeys& known);

// For a library caller: every option of an experiment by name ("model", "dataset", "max_epochs"),
// and those of what is to be done with it (search_options).
Settings experiment_settings(const Value& given, const std::string& config_path = "",
                             const std::vector<Field>& further = {});

// The four columns of MASE's table, of the options that differ from their defaults; "" if none
// does.
std::string settings_table(const Settings& settings, bool every = false);

// A file's path as it was written, or beside the configuration that names it.
std::string path_beside(const std::string& path, const std::string& config_path);

}  // namespace mase
