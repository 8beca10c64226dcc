// SPDX-License-Identifier: Apache-2.0
// Options as MASE reads them: default < top-level key of the TOML file < typed flag, where a typed
// flag always wins, even one that repeats the default. The table of all four is printed first.
#pragma once

#include <string>
#include <vector>

#include "mase/cli/command.h"

namespace mase {

struct OptionRow {
  std::string name;
  Value fallback, config, flag, effective;
};

struct Settings {
  Value values;                 // effective values by option name, positionals included
  std::vector<OptionRow> rows;  // for the table and the run record
  Value config;                 // the whole TOML file, null without one
  std::string config_path;
  std::vector<std::string> warnings;  // options that need a GPU or a service: what happens instead

  const Value& operator[](const std::string& name) const { return values[name]; }
  bool has(const std::string& name) const { return !values[name].is_null(); }
  // The value was typed or stands in the file.
  bool given(const std::string& name) const;
  Value rows_value() const;  // the "options" of run.json
  std::string toml() const;  // the effective configuration, tables of the file included
};

// Merges what was typed with the file named by --config. Unknown keys of the file are errors that
// name the nearest known one; its tables (passes, search, ...) are left to the command.
Settings merge_settings(const std::string& command, const Arguments& arguments);
std::string settings_table(const Settings& settings);

// The options every action of MASE has: --config, --task, --load, --load-type, --batch-size, ...
std::vector<Field> general_options();
// The options that say where data come from and how they are prepared: --data-dir, --val-split ...
std::vector<Field> data_options();
// The options of MASE's trainer.
std::vector<Field> trainer_options();
// Those of a machine with GPUs, a cluster or a build farm: accepted, each with one warning.
std::vector<Field> machine_options();

std::vector<Field> operator+(std::vector<Field> first, const std::vector<Field>& second);

struct DatasetOptions;
DatasetOptions dataset_options(const Settings& settings);

}  // namespace mase
