// SPDX-License-Identifier: Apache-2.0
#include "mase/run/record_options.h"

#include <algorithm>

#include "mase/base/registry.h"
#include "mase/base/text.h"
#include "mase/data/dataset.h"
#include "mase/run/settings.h"
#include "mase/train/loss.h"
#include "mase/train/optimizer.h"
#include "mase/train/schedule.h"

namespace mase {
namespace {

template <class Record>
RecordSet set_of(const std::string& prefix, const std::string& selector, Schema Record::*options) {
  RecordSet set{prefix, selector, {}};
  for (const Record* record : Registry<Record>::instance().all())
    set.choices.push_back({record->name, record->aliases, record->*options});
  return set;
}

// The name an option goes by at the top of a file and as a flag.
std::string top_name(const RecordSet& set, const Field& option) {
  return option.aliases.empty() ? set.prefix + "_" + option.name : option.aliases.front();
}

struct SharedOption {
  Field field;
  std::vector<std::string> members, defaults;
};

// Members that agree on an option share its flag.
std::vector<SharedOption> shared_options(const RecordSet& set) {
  std::vector<SharedOption> all;
  for (const RecordChoice& choice : set.choices)
    for (const Field& option : choice.options.fields) {
      auto found = std::find_if(all.begin(), all.end(), [&](const SharedOption& one) {
        return one.field.name == option.name;
      });
      if (found == all.end()) found = all.insert(all.end(), {option, {}, {}});
      found->members.push_back(choice.name);
      found->defaults.push_back(option.default_value.is_null() ? ""
                                                               : python_repr(option.default_value));
      if (found->field.aliases.empty()) found->field.aliases = option.aliases;
      if (found->field.help.empty()) found->field.help = option.help;
    }
  return all;
}

std::string default_text(const SharedOption& option) {
  const bool same =
      std::all_of(option.defaults.begin(), option.defaults.end(),
                  [&](const std::string& text) { return text == option.defaults[0]; });
  if (same)
    return option.defaults[0].empty() ? "" : fmt::format(" (default: {})", option.defaults[0]);
  std::vector<std::string> parts;
  for (size_t i = 0; i < option.members.size(); ++i)
    parts.push_back(option.members[i] + " " +
                    (option.defaults[i].empty() ? "none" : option.defaults[i]));
  return fmt::format(" (default: {})", join(parts, ", "));
}

}  // namespace

const RecordChoice* RecordSet::find(const std::string& name) const {
  for (const RecordChoice& choice : choices)
    if (choice.name == name || std::count(choice.aliases.begin(), choice.aliases.end(), name) > 0)
      return &choice;
  return nullptr;
}

std::string RecordSet::option_of(const std::string& key) const {
  if (key == "name") return selector;
  for (const RecordChoice& choice : choices)
    if (const Field* option = choice.options.find(key)) return top_name(*this, *option);
  return "";
}

std::vector<std::string> RecordSet::keys() const {
  std::vector<std::string> keys = {"name"};
  for (const SharedOption& option : shared_options(*this)) keys.push_back(option.field.name);
  return keys;
}

const std::vector<RecordSet>& record_sets() {
  static const std::vector<RecordSet> sets = {
      set_of<OptimizerRecord>("optimizer", "training_optimizer", &OptimizerRecord::arguments),
      set_of<ScheduleRecord>("schedule", "schedule", &ScheduleRecord::arguments),
      set_of<LossRecord>("loss", "loss", &LossRecord::options),
      set_of<DatasetRecord>("dataset", "dataset", &DatasetRecord::options),
  };
  return sets;
}

const RecordSet& record_set(const std::string& prefix) {
  for (const RecordSet& set : record_sets())
    if (set.prefix == prefix) return set;
  throw Error(prefix, "is no set of records");
}

std::vector<Field> record_fields(const std::string& prefix, const std::string& group) {
  const RecordSet& set = record_set(prefix);
  std::vector<Field> fields;
  for (const SharedOption& option : shared_options(set)) {
    Field field;
    field.name = top_name(set, option.field);
    field.type = option.field.type;
    field.help = join(option.members, ", ") +
                 (option.field.help.empty() ? "" : ": " + option.field.help) + default_text(option);
    field.group = group;
    const std::string full = set.prefix + "_" + option.field.name;
    if (full != field.name) field.aliases.push_back(full);
    for (const std::string& alias : option.field.aliases)
      if (alias != field.name) field.aliases.push_back(alias);
    fields.push_back(std::move(field));
  }
  return fields;
}

Value record_default(const Settings& settings, const std::string& prefix, const Field& option) {
  const Value& optimizer = settings["training_optimizer"];
  if (prefix == "schedule" && optimizer.is_string())
    if (const auto* record = Registry<OptimizerRecord>::instance().find(optimizer.as_string()))
      if (const Value* other = record->schedule_defaults.find(option.name)) return *other;
  return option.default_value;
}

Dict given_record_options(const Settings& settings, const std::string& prefix) {
  const RecordSet& set = record_set(prefix);
  Dict given;
  for (const SharedOption& option : shared_options(set))
    if (const Value& value = settings[top_name(set, option.field)]; !value.is_null())
      given.set(option.field.name, value);
  return given;
}

Value record_options(const Settings& settings, const std::string& prefix,
                     const std::string& chosen) {
  const RecordSet& set = record_set(prefix);
  const RecordChoice* choice = set.find(chosen);
  Dict given;
  Problems problems;
  for (const SharedOption& option : shared_options(set)) {
    const std::string top = top_name(set, option.field);
    const Value& value = settings[top];
    const Field* own_option = choice ? choice->options.find(option.field.name) : nullptr;
    if (own_option) {
      given.set(option.field.name,
                value.is_null() ? record_default(settings, prefix, *own_option) : value);
      continue;
    }
    if (value.is_null()) continue;
    const std::vector<std::string> own =
        choice ? choice->options.names() : std::vector<std::string>();
    problems.add(Error(value.position(), value.position() ? top : "--" + replace_all(top, "_", "-"),
                       fmt::format("{} has no option '{}'", printable(chosen), option.field.name),
                       own.empty() ? "it has none" : "it has: " + join(own, ", ")));
  }
  const Value checked = choice ? validate(given, choice->options, prefix, problems) : Value(given);
  problems.throw_if_any();
  return checked;
}

}  // namespace mase
