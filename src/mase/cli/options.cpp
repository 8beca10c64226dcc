// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/options.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "mase/data/dataset.h"

namespace mase {
namespace {

// MASE's files call some options by other names than its flags.
std::string shown_name(const std::string& name) { return name == "load" ? "load_name" : name; }

const Field* field_of_key(const Schema& schema, const std::string& key) {
  for (const Field& field : schema.fields) {
    if (field.name == key) return &field;
    if (std::count(field.aliases.begin(), field.aliases.end(), key)) return &field;
  }
  return nullptr;
}

std::string cell_text(const Value& value, bool is_absent_blank) {
  if (value.is_null()) return is_absent_blank ? "" : "None";
  const std::string text = printable(value.is_string() ? value.as_string() : python_repr(value));
  // Long paths would push the table out of any terminal; their ends say more than their beginnings.
  constexpr size_t longest = 40;
  return text.size() <= longest ? text : "..." + text.substr(text.size() - longest + 3);
}

// Whole numbers written as 1e2 or 10.0 and numbers written as 1 mean the same as the other form.
Value to_field_type(const Value& value, const Field& field) {
  Value result = value;
  if (field.type == FieldType::integer && value.is_double() &&
      value.as_double() == std::floor(value.as_double()) && std::fabs(value.as_double()) < 1e15)
    result = static_cast<int64_t>(value.as_double());
  if (field.type == FieldType::text && value.is_int()) result = std::to_string(value.as_int());
  if (field.type == FieldType::text && value.is_double()) result = python_float(value.as_double());
  result.at(value.position());
  return result;
}

// What the option means on a machine without GPUs, services and vendor tools.
std::string warning_for(const std::string& name, const Value& value) {
  const std::string text = cell_text(value, false);
  if (name == "accelerator" && text != "auto" && text != "cpu")
    return fmt::format("accelerator = {}: there is no such device here; the CPU is used", text);
  if (name == "strategy" && text != "auto")
    return fmt::format("strategy = {}: ignored; run under mpirun to train on several processes",
                       text);
  if (name == "num_devices" && text != "1")
    return fmt::format("num_devices = {}: ignored; one CPU is used (see --threads)", text);
  if (name == "nodes" && text != "1")
    return fmt::format("nodes = {}: ignored; run under mpirun to train on several machines", text);
  if (name == "report_to" && text == "wandb")
    return "report_to = wandb: no service is contacted; TensorBoard files are written instead";
  if (name == "trainer_precision" && text != "32")
    return fmt::format("trainer_precision = {}: ignored; training runs in 32 bits", text);
  if (name == "max_token_len" && text != "512")
    return "max_token_len: ignored; there are no language models here";
  if (name == "num_targets" && text != "100")
    return "num_targets: ignored; it matters when hardware is emitted";
  if (!value.is_bool() || !value.as_bool()) return "";
  if (name == "auto_requeue") return "auto_requeue: ignored; --resume continues a stopped run";
  if (name == "pretrained") return "pretrained: ignored; nothing is downloaded, use --load FILE";
  if (name == "github_ci" || name == "run_emit" || name == "skip_build" || name == "skip_test")
    return name + ": ignored; it matters when hardware is emitted";
  return "";
}

}  // namespace

bool Settings::given(const std::string& name) const {
  for (const OptionRow& row : rows)
    if (row.name == name || row.name == shown_name(name))
      return !row.config.is_null() || !row.flag.is_null();
  return false;
}

Value Settings::rows_value() const {
  List list;
  for (const OptionRow& row : rows)
    list.push_back(Dict{{"name", row.name},
                        {"default", row.fallback},
                        {"config", row.config},
                        {"flag", row.flag},
                        {"effective", row.effective}});
  return list;
}

std::string Settings::toml() const {
  Dict all;
  for (const OptionRow& row : rows)
    if (!row.effective.is_null() && row.name != "config") all.set(row.name, row.effective);
  if (config.is_dict())
    for (const auto& [key, value] : config.as_dict())
      if (value.is_dict() && !all.contains(key)) all.set(key, value);
  return to_toml(all);
}

std::vector<Field> operator+(std::vector<Field> first, const std::vector<Field>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Settings merge_settings(const std::string& command_name, const Arguments& arguments) {
  const CommandRecord& command = Registry<CommandRecord>::instance().get(command_name);
  Settings settings;
  settings.values = arguments.values;
  Value from_file = Dict{};
  if (arguments.was_typed("config")) {
    settings.config_path = arguments["config"].as_string();
    settings.config = read_toml(settings.config_path);
    Problems problems;
    std::set<std::string> seen;
    for (const auto& [key, value] : settings.config.as_dict()) {
      const Field* field = field_of_key(command.options, key);
      const bool positional =
          std::any_of(command.positionals.begin(), command.positionals.end(),
                      [&, &wanted = key](const Positional& one) { return one.name == wanted; });
      if (value.is_dict() && !(field && field->type == FieldType::table)) continue;
      if (!field && !positional) {
        // A file written for another action is welcome: all keys of MASE's options are known.
        const Schema known{general_options() + data_options() + trainer_options() +
                           machine_options()};
        if (field_of_key(known, key) || key == "model" || key == "dataset") continue;
        std::vector<std::string> names = known.names();
        for (const std::string& own : command.options.names()) names.push_back(own);
        problems.add(Error(value.position(), key, "unknown key", suggestion(key, names)));
        continue;
      }
      const std::string name = field ? field->name : key;
      if (!seen.insert(name).second) {
        problems.add(Error(value.position(), key, fmt::format("'{}' is given twice", name)));
        continue;
      }
      from_file[name] = field ? to_field_type(value, *field) : value;
    }
    Dict options = from_file.as_dict();
    for (const Positional& one : command.positionals) options.erase(one.name);
    Value checked = validate(Value(options), command.options, "", problems);
    problems.throw_if_any();
    for (const auto& [name, value] : options)
      if (!arguments.was_typed(name)) settings.values[name] = checked[name];
    for (const Positional& one : command.positionals)
      if (const Value* value = from_file.as_dict().find(one.name);
          value && !arguments.was_typed(one.name))
        settings.values[one.name] = value->as_string(one.name);
  }
  const auto add_row = [&](const std::string& name, const Value& fallback) {
    const Value* written = from_file.as_dict().find(name);
    settings.rows.push_back({shown_name(name), fallback, written ? *written : Value(),
                             arguments.was_typed(name) ? arguments[name] : Value(),
                             settings.values[name]});
  };
  for (const Field& field : command.options.fields) {
    add_row(field.name, field.default_value);
    const std::string warning = warning_for(field.name, settings.values[field.name]);
    if (!warning.empty()) settings.warnings.push_back(warning);
  }
  for (const Positional& one : command.positionals) add_row(one.name, {});
  return settings;
}

// tabulate's "pretty" style: names to the left, everything else in the middle of its column.
std::string settings_table(const Settings& settings) {
  std::vector<std::vector<std::string>> lines = {
      {"Name", "Default", "Config. File", "Manual Override", "Effective"}};
  for (const OptionRow& row : settings.rows)
    lines.push_back({row.name, cell_text(row.fallback, false), cell_text(row.config, true),
                     cell_text(row.flag, true), cell_text(row.effective, false)});
  std::vector<int> widths(lines[0].size());
  for (const auto& line : lines)
    for (size_t c = 0; c < line.size(); ++c)
      widths[c] = std::max(widths[c], display_width(line[c]));
  std::string rule = "+";
  for (const int width : widths) rule += std::string(static_cast<size_t>(width) + 2, '-') + "+";
  std::string text = rule + "\n";
  for (size_t l = 0; l < lines.size(); ++l) {
    text += "|";
    for (size_t c = 0; c < widths.size(); ++c) {
      const int blanks = widths[c] - display_width(lines[l][c]);
      const int left = c == 0 ? 0 : blanks / 2;
      text += " " + std::string(static_cast<size_t>(left), ' ') + lines[l][c] +
              std::string(static_cast<size_t>(blanks - left), ' ') + " |";
    }
    text += "\n" + (l == 0 ? rule + "\n" : "");
  }
  return text + rule + "\n";
}

DatasetOptions dataset_options(const Settings& settings) {
  DatasetOptions options;
  if (settings.has("data_dir")) options.data_dir = settings["data_dir"].as_string();
  if (settings.has("val_split")) options.validation_split = settings["val_split"].as_string();
  if (settings.has("sim_rows")) options.sim_rows = settings["sim_rows"].as_int();
  if (settings.has("seed")) options.seed = static_cast<uint64_t>(settings["seed"].as_int());
  if (settings.has("drop_bad_rows")) options.drop_bad_rows = settings["drop_bad_rows"].as_bool();
  if (settings.has("disable_dataset_cache"))
    options.use_cache = !settings["disable_dataset_cache"].as_bool();
  // MASE's files may name an FPGA here; that is no column.
  if (settings.has("target") && !starts_with(settings["target"].as_string(), "xc"))
    options.target = settings["target"].as_string();
  if (settings.has("categorical")) options.categorical = settings["categorical"].as_string();
  if (settings.has("scaling")) options.scaling = settings["scaling"].as_string();
  if (settings.has("class_weights"))
    options.class_weighting = settings["class_weights"].as_string();
  return options;
}

}  // namespace mase
