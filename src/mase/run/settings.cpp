// SPDX-License-Identifier: Apache-2.0
#include "mase/run/settings.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "mase/base/address.h"
#include "mase/base/text.h"
#include "mase/run/metric_options.h"
#include "mase/run/options.h"
#include "mase/run/record_options.h"
#include "mase/run/set_option.h"

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

bool is_listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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
  result.set_position(value.position());
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

// [optimizer] beta1 = 0.9 as the option it stands for; the rest as it is. A key that no member of
// the set reads is a problem.
Dict flattened(const Dict& given, Problems& problems) {
  Dict flat;
  for (const auto& [key, value] : given) {
    const auto& sets = record_sets();
    const auto set = std::find_if(sets.begin(), sets.end(), [&, &name = key](const RecordSet& one) {
      return one.prefix == name;
    });
    if (key == "metrics" && value.is_dict()) {
      Value text = metrics_text(value, problems);
      flat.add(key, text.set_position(value.position()));
      continue;
    }
    if (set == sets.end() || !value.is_dict()) {
      flat.add(key, value);
      continue;
    }
    for (const auto& [inner, content] : value.as_dict()) {
      const std::string option = set->option_of(inner);
      if (option.empty())
        problems.add(Error(content.position(), key,
                           fmt::format("unknown key '{}'", printable(inner)),
                           suggestion(inner, set->keys()))
                         .as(Mistake::unknown_key));
      else
        flat.add(option, content);
    }
  }
  return flat;
}

// The keys of the file that are options of this request, by the options' own names.
Value options_of_file(const SettingsRequest& request, const Value& file, Problems& problems) {
  Value found = Dict{};
  std::set<std::string> seen;
  for (const auto& [key, value] : flattened(file.as_dict(), problems)) {
    const Field* field = field_of_key(request.options, key);
    const bool is_positional = is_listed(request.positionals, key);
    if (value.is_dict() && !(field && field->type == FieldType::table)) {
      if (is_listed(request.elsewhere.tables, key)) continue;
      std::vector<std::string> tables = request.elsewhere.tables;
      for (const RecordSet& set : record_sets()) tables.push_back(set.prefix);
      tables.emplace_back("metrics");
      problems.add(Error(value.position(), key, "unknown table", suggestion(key, tables))
                       .as(Mistake::unknown_key));
      continue;
    }
    if (!field && !is_positional) {
      if (is_listed(request.elsewhere.keys, key)) continue;
      std::vector<std::string> names = request.elsewhere.keys;
      for (const std::string& own : request.options.names()) names.push_back(own);
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
      problems.add(Error(value.position(), key, "unknown key", suggestion(key, names))
                       .as(Mistake::unknown_key));
      continue;
    }
    const std::string name = field ? field->name : key;
    if (!seen.insert(name).second) {
      problems.add(Error(value.position(), key, fmt::format("'{}' is given twice", name)));
      continue;
    }
    found[name] = field ? to_field_type(value, *field) : value;
  }
  return found;
}

// The rows of the chosen members' options show the members' defaults.
void show_record_defaults(Settings& settings) {
  for (const RecordSet& set : record_sets()) {
    const Value& chosen = settings[set.selector];
    const RecordChoice* choice = chosen.is_string() ? set.find(chosen.as_string()) : nullptr;
    if (!choice) continue;
    for (const Field& option : choice->options.fields)
      for (OptionRow& row : settings.rows) {
        if (row.name != set.option_of(option.name)) continue;
        row.fallback = record_default(settings, set.prefix, option);
        if (row.effective.is_null()) row.effective = row.fallback;
      }
  }
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
  // Defaults of a chosen member (an optimiser's) stay its own: a reader may choose another member.
  for (const OptionRow& row : rows)
    if (!values[row.name == "load_name" ? "load" : row.name].is_null() && row.name != "config")
      all.set(row.name, row.effective);
  if (config.is_dict())
    for (const auto& [key, value] : config.as_dict())
      if (value.is_dict() && !all.contains(key)) all.set(key, without_passwords(value));
  return to_toml(all);
}

Settings read_settings(const SettingsRequest& request, Problems& problems) {
  Settings settings;
  settings.elsewhere = request.elsewhere;
  for (const std::string& name : request.options.names()) settings.elsewhere.keys.push_back(name);
  Value from_file = Dict{};
  if (!request.config_path.empty()) {
    settings.config_path = request.config_path;
    settings.config = read_toml(settings.config_path);
  }
  if (request.changes.is_dict() && !request.changes.as_dict().empty())
    settings.config = with_changes(settings.config, request.changes);
  if (settings.config.is_dict()) from_file = options_of_file(request, settings.config, problems);
  Dict options = from_file.as_dict();
  for (const std::string& name : request.positionals) options.erase(name);
  const auto add_checked = [&](const Dict& values) {
    Problems found;
    Value checked = validate(Value(values), request.options, "", found);
    for (const Error& error : found.errors()) problems.add(error);
    return found.empty() ? checked : validate(Dict{}, request.options, "", found);
  };
  const Value checked = add_checked(options);
  const Dict typed_options = flattened(request.given.as_dict(), problems);
  Dict given = typed_options;
  for (const std::string& name : request.positionals) given.erase(name);
  const Value direct = add_checked(given);
  Dict values;
  for (const Field& field : request.options.fields)
    values.set(field.name, given.contains(field.name) ? direct[field.name] : checked[field.name]);
  for (const std::string& name : request.positionals) {
    const Value* typed = typed_options.find(name);
    const Value* written = from_file.as_dict().find(name);
    Value value = typed && !typed->is_null() ? *typed : written ? *written : Value();
    if (!value.is_null() && !value.is_string() && !value.is_list()) {
      problems.add(
          Error(value.position(), name, fmt::format("expected text, got {}", value.type_name())));
      value = {};
    }
    values.set(name, value);
  }
  settings.values = std::move(values);
  const auto add_row = [&](const std::string& name, const Value& fallback, bool secret) {
    const Value* written = from_file.as_dict().find(name);
    const Value* typed = typed_options.find(name);
    // Rows are shown and kept in the run folder.
    const auto shown = [&](const Value* value) {
      if (!value) return Value();
      return secret && value->is_string() ? Value(masked_address(value->as_string()))
                                          : without_passwords(*value);
    };
    settings.rows.push_back(
        {shown_name(name), fallback, shown(written), shown(typed), shown(&settings.values[name])});
  };
  for (const Field& field : request.options.fields) {
    add_row(field.name, field.default_value, field.secret);
    const std::string warning = warning_for(field.name, settings.values[field.name]);
    if (!warning.empty()) settings.warnings.push_back(warning);
  }
  for (const std::string& name : request.positionals) add_row(name, {}, false);
  show_record_defaults(settings);
  // Code is loaded where somebody types its name, never because a file says so.
  for (OptionRow& row : settings.rows) {
    if (row.name != "plugin" || row.config.is_null() || !row.flag.is_null()) continue;
    row.effective = settings.values[row.name] = Value();
    settings.warnings.push_back(
        "plugin: not loaded, because a file says so; give it on the command line: --plugin FILE");
  }
  return settings;
}

Settings read_settings(const SettingsRequest& request) {
  Problems problems;
  Settings settings = read_settings(request, problems);
  problems.throw_if_any();
  return settings;
}

Value passes_of_file(const std::string& path, const KnownKeys& known) {
  const Value file = read_toml(path);
  SettingsRequest request;
  request.elsewhere = known;
  Problems problems;
  options_of_file(request, file, problems);
  problems.throw_if_any();
  if (file["passes"].is_null())
    throw Error(path, "lists no passes",
                "add a table such as [passes.quantize]; see docs/passes.md");
  return file["passes"];
}

Settings experiment_settings(const Value& given, const std::string& config_path,
                             const std::vector<Field>& further) {
  SettingsRequest request;
  request.options = {general_options() + data_options() + trainer_options() + further +
                     machine_options()};
  request.positionals = {"model", "dataset"};
  request.given = given.is_null() ? Value(Dict{}) : given;
  request.config_path = config_path;
  request.elsewhere.tables = {"passes", "search"};
  return read_settings(request);
}

// tabulate's "pretty" style: names to the left, everything else in the middle of its column.
std::string settings_table(const Settings& settings, bool every) {
  std::vector<std::vector<std::string>> lines = {
      {"Name", "Default", "Config. File", "Manual Override", "Effective"}};
  for (const OptionRow& row : settings.rows)
    if (every || row.effective != row.fallback)
      lines.push_back({row.name, cell_text(row.fallback, false), cell_text(row.config, true),
                       cell_text(row.flag, true), cell_text(row.effective, false)});
  if (lines.size() == 1) return "";
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

std::string path_beside(const std::string& path, const std::string& config_path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path.empty() || config_path.empty() || fs::path(path).is_absolute() ||
      fs::exists(path, ignored))
    return path;
  const fs::path beside = fs::path(config_path).parent_path() / path;
  return fs::exists(beside, ignored) ? beside.string() : path;
}

}  // namespace mase
