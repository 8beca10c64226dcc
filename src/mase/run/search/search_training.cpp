// SPDX-License-Identifier: Apache-2.0
#include "mase/run/search/search_training.h"

#include <algorithm>
#include <map>
#include <set>

#include "mase/base/text.h"
#include "mase/run/options.h"
#include "mase/run/record_options.h"

namespace mase {
namespace {

using search::TrainingOption;

// MASE's names in basic_train for options that have another one here.
const std::map<std::string, std::string>& own_names() {
  static const std::map<std::string, std::string> names = {{"lr_scheduler", "schedule"},
                                                           {"optimizer", "training_optimizer"},
                                                           {"num_warmup_steps", "warmup_steps"}};
  return names;
}

// The schedules of transformers, which MASE's key means.
Value own_schedule(const Value& given) {
  static const std::map<std::string, std::string> schedules = {
      {"linear", "linear-decay"}, {"constant_with_warmup", "constant"}};
  const auto found = given.is_string() ? schedules.find(given.as_string()) : schedules.end();
  Value result = found == schedules.end() ? given : Value(found->second);
  result.set_position(given.position());
  return result;
}

}  // namespace

std::vector<TrainingOption> training_options() {
  static const std::set<std::string> no_learning = {"log_every_n_steps",
                                                    "checkpoint_seconds",
                                                    "checkpoint_steps",
                                                    "save_type",
                                                    "deterministic",
                                                    "metrics",
                                                    "monitor"};
  std::vector<TrainingOption> options;
  for (const Field& field : general_options())
    if (field.name == "batch_size") options.push_back({field});
  for (const Field& field : trainer_options()) {
    if (no_learning.count(field.name)) continue;
    TrainingOption option{field};
    for (const RecordSet& set : record_sets())
      for (const RecordChoice& choice : set.choices)
        for (const Field& own : choice.options.fields)
          if (set.prefix != "dataset" && set.option_of(own.name) == field.name) {
            option.selector = set.selector;
            option.members.push_back(choice.name);
          }
    options.push_back(std::move(option));
  }
  return options;
}

void read_basic_train(const Value& table, const std::string& path, SearchSpec& spec,
                      Problems& problems) {
  spec.trained = true;
  Dict own;
  const std::set<std::string> of_search = {"name", "data_loader", "num_samples", "warm_start",
                                           "front_only"};
  std::vector<std::string> known(of_search.begin(), of_search.end());
  for (const auto& [theirs, ours] : own_names()) known.push_back(theirs);
  std::vector<TrainingOption> options = training_options();
  for (const TrainingOption& option : options) known.push_back(option.field.name);
  Dict given;
  for (const auto& [key, value] : table.as_dict(path)) {
    if (of_search.count(key)) {
      own.set(key, value);
      continue;
    }
    const auto renamed = own_names().find(key);
    const std::string name = renamed == own_names().end() ? key : renamed->second;
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const auto& one) { return one.field.name == name; });
    if (option == options.end()) {
      problems.add(Error(value.position(), path, fmt::format("unknown key '{}'", printable(key)),
                         suggestion(key, known))
                       .as(Mistake::unknown_key));
      continue;
    }
    given.set(name, key == "lr_scheduler" ? own_schedule(value) : value);
  }
  Schema schema;
  for (const auto& [name, value] : given)
    for (const TrainingOption& option : options)
      if (option.field.name == name) {
        schema.fields.push_back(option.field);
        schema.fields.back().aliases.clear();
      }
  const Value checked = validate(Value(given), schema, path, problems);
  for (const auto& [name, value] : checked.as_dict())
    if (!value.is_null()) spec.train_changes.set(name, value);
  const Schema rest{{{.name = "name", .type = FieldType::text},
                     {.name = "data_loader",
                      .type = FieldType::text,
                      .default_value = "train_dataloader",
                      .choices = {"train_dataloader"}},
                     {.name = "num_samples", .type = FieldType::integer, .minimum = 1},
                     {.name = "warm_start", .type = FieldType::boolean, .default_value = true},
                     {.name = "front_only", .type = FieldType::boolean, .default_value = false}}};
  const Value read = validate(Value(own), rest, path, problems);
  if (read["num_samples"].is_int()) spec.train_rows = read["num_samples"].as_int();
  if (read["warm_start"].is_bool()) spec.warm_start = read["warm_start"].as_bool();
  if (read["front_only"].is_bool()) spec.front_only = read["front_only"].as_bool();
  spec.trained = !spec.front_only;
  if (read["name"].is_string())
    spec.notices.push_back(
        "basic_train.name has no effect: search.strategy.metrics says what is searched for");
}

}  // namespace mase
