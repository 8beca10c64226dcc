// SPDX-License-Identifier: Apache-2.0
#include "mase/search/spaces/option_space.h"

#include <algorithm>
#include <cmath>

#include "mase/base/text.h"

namespace mase::search {
namespace {

const TrainingOption* option_called(const std::vector<TrainingOption>& options,
                                    const std::string& name) {
  for (const TrainingOption& option : options)
    if (option.field.name == name ||
        std::count(option.field.aliases.begin(), option.field.aliases.end(), name) > 0)
      return &option;
  return nullptr;
}

// The value as the option takes it, or a problem.
Value checked(const Value& value, const Field& field, const std::string& path, Problems& problems) {
  Field one = field;
  one.aliases.clear();
  one.default_value = {};
  Value given(Dict{{one.name, value}});
  given.set_position(value.position());
  return validate(given, {{one}}, path, problems)[one.name];
}

const Schema range_schema = {{{.name = "low", .type = FieldType::number},
                              {.name = "high", .type = FieldType::number},
                              {.name = "log", .type = FieldType::boolean, .default_value = false},
                              {.name = "step", .type = FieldType::number, .minimum = 0}}};

}  // namespace

OptionSpace::OptionSpace(const Value& table, const std::string& path,
                         const std::vector<TrainingOption>& options, const Value& chosen,
                         Problems& problems) {
  // Selectors first: what belongs to one member depends on them.
  const auto is_selector = [&](const std::string& name) {
    return std::any_of(options.begin(), options.end(),
                       [&](const TrainingOption& one) { return one.selector == name; });
  };
  for (const bool selectors : {true, false})
    for (const auto& [key, value] : table.as_dict(path)) {
      const TrainingOption* option = option_called(options, key);
      if (!option) {
        std::vector<std::string> names;
        for (const TrainingOption& one : options) names.push_back(one.field.name);
        if (selectors)
          problems.add(Error(value.position(), path,
                             fmt::format("unknown key '{}'", printable(key)),
                             suggestion(key, names))
                           .as(Mistake::unknown_key));
        continue;
      }
      if (is_selector(option->field.name) == selectors)
        add(key, value, path + "." + key, *option, chosen, problems);
    }
}

void OptionSpace::add(const std::string& key, const Value& value, const std::string& path,
                      const TrainingOption& option, const Value& chosen, Problems& problems) {
  const Field& field = option.field;
  for (const Chosen& other : chosen_)
    if (other.option == field.name) {
      problems.add(Error(value.position(), path, "is given twice"));
      return;
    }
  const size_t before = problems.errors().size();
  Chosen entry{field.name, {}, -1};
  std::optional<Distribution> distribution;
  if (value.is_dict()) {
    const Value range = validate(value, range_schema, path, problems);
    for (const char* end : {"low", "high"})  // a key that is mistyped is told alone
      if (range[end].is_null() && problems.errors().size() == before)
        problems.add(Error(value.position(), path, fmt::format("'{}' is missing", end)));
    if (field.type != FieldType::integer && field.type != FieldType::number)
      problems.add(
          Error(value.position(), path, "is no number: it has no range", "give a list of values"));
    if (problems.errors().size() != before) return;
    const double low = range["low"].as_double(), high = range["high"].as_double();
    const bool log = range["log"].as_bool(), whole = field.type == FieldType::integer;
    const double step = range["step"].is_number() ? range["step"].as_double() : whole ? 1 : 0;
    const bool integral =
        low == std::floor(low) && high == std::floor(high) && step == std::floor(step) && step >= 1;
    if (whole && !integral)
      problems.add(Error(value.position(), path, "low, high and step must be whole numbers"));
    for (const double end : {low, high})
      checked(whole && integral ? Value(static_cast<int64_t>(end)) : Value(end), field, path,
              problems);
    if (problems.errors().size() != before) return;
    try {
      distribution = whole ? Distribution::integer(low, high, log, step, path)
                           : Distribution::real(low, high, log, step, path);
    } catch (const Error& error) {
      problems.add(Error(value.position(), path, error.cause(), error.remedy()));
      return;
    }
  } else {
    List choices;
    for (const Value& one : choices_of(value))
      choices.push_back(checked(one, field, path, problems));
    if (choices.empty()) problems.add(Error(value.position(), path, "the list is empty"));
    if (problems.errors().size() != before) return;
    if (choices.size() == 1)
      entry.fixed = choices[0];
    else
      distribution = Distribution::categorical(std::move(choices), path);
  }
  if (distribution) {
    Parameter parameter{"train/" + key, *distribution};
    if (!option.selector.empty()) {
      const auto selecting = std::find_if(chosen_.begin(), chosen_.end(), [&](const Chosen& one) {
        return one.option == option.selector;
      });
      const bool searched = selecting != chosen_.end() && selecting->parameter >= 0;
      const auto is_member = [&](const Value& name) {
        return name.is_string() &&
               std::count(option.members.begin(), option.members.end(), name.as_string()) > 0;
      };
      if (searched) {
        parameter.parent = selecting->parameter;
        const Distribution& names =
            space_.parameters()[static_cast<size_t>(selecting->parameter)].distribution;
        for (size_t i = 0; i < names.choices.size(); ++i)
          if (is_member(names.choices[i])) parameter.when.push_back(static_cast<double>(i));
      }
      const Value& fixed = selecting != chosen_.end() ? selecting->fixed : chosen[option.selector];
      if (searched ? parameter.when.empty() : !is_member(fixed)) {
        problems.add(
            Error(value.position(), path,
                  fmt::format("belongs to {}, which is not chosen", join(option.members, ", ")),
                  fmt::format("add {} = [\"{}\"]", option.selector, option.members.front())));
        return;
      }
    }
    entry.parameter = static_cast<int>(space_.add(std::move(parameter)));
  }
  chosen_.push_back(std::move(entry));
}

Dict OptionSpace::options(const Point& point) const {
  Dict all;
  for (const Chosen& one : chosen_) {
    if (one.parameter < 0) {
      all.set(one.option, one.fixed);
      continue;
    }
    const auto index = static_cast<size_t>(one.parameter);
    if (!std::isnan(point[index]))
      all.set(one.option, space_.parameters()[index].distribution.external(point[index]));
  }
  return all;
}

void OptionSpace::apply(const Point& point, const CandidateUse&, Candidate& candidate) const {
  for (auto& [key, value] : options(point)) candidate.training.set(key, value);
}

Dict OptionSpace::sampled_config(const Point& point) const {
  return {{"train", Value(options(point))}};
}

}  // namespace mase::search
