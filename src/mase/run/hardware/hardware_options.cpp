// SPDX-License-Identifier: Apache-2.0
// The options of designs and comparisons, for every way to ask for them.
#include <algorithm>

#include "mase/base/text.h"
#include "mase/hardware/emit/target.h"
#include "mase/run/hardware/hardware.h"

namespace mase {

std::vector<Field> design_fields() {
  std::vector<Field> fields = {
      {.name = "style",
       .type = FieldType::text,
       .default_value = "unrolled",
       .help = "how it is built",
       .choices = Registry<EmitterRecord>::instance().names(),
       .group = "design"},
      {.name = "target",
       .type = FieldType::text,
       .default_value = "generic",
       .help = "the cells it is written for",
       .choices = Registry<TargetRecord>::instance().names(),
       .group = "design"},
      {.name = "top",
       .type = FieldType::text,
       .default_value = "top",
       .help = "name of the module",
       .group = "design"},
      {.name = "levels",
       .type = FieldType::number,
       .default_value = 0,
       .help = "registers at most so many levels of logic apart; 0: none, combinational",
       .minimum = 0,
       .group = "design"},
      {.name = "argmax",
       .type = FieldType::boolean,
       .default_value = false,
       .help = "give the number of the largest output instead of the outputs",
       .group = "design"},
      {.name = "effort",
       .type = FieldType::integer,
       .default_value = 1,
       .help = "of the search for shared additions: each step doubles it",
       .minimum = 0,
       .maximum = 10,
       .group = "design"},
      {.name = "seed",
       .type = FieldType::integer,
       .default_value = 0,
       .help = "of that search and of drawn rows",
       .minimum = 0,
       .group = "design"},
      {.name = "delay_weight",
       .type = FieldType::number,
       .help = "how much late results count against more bits (default: 8 and 12 are tried)",
       .minimum = 0,
       .maximum = 1000,
       .group = "design"}};
  for (const EmitterRecord* style : Registry<EmitterRecord>::instance().all())
    for (Field field : style->schema.fields) {
      const auto same = std::find_if(fields.begin(), fields.end(),
                                     [&](const Field& one) { return one.name == field.name; });
      if (same != fields.end()) {  // of several styles
        same->group += fmt::format(" and {}", style->name);
        continue;
      }
      field.group = fmt::format("design, style {}", style->name);
      fields.push_back(std::move(field));
    }
  return fields;
}

namespace {

std::string option_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// All styles that have this option, not the first of them alone.
std::string styles_with(const std::string& key) {
  std::vector<std::string> names;
  for (const EmitterRecord* style : Registry<EmitterRecord>::instance().all())
    if (style->schema.find(key)) names.push_back(style->name);
  return fmt::format("style{} {}", names.size() == 1 ? "" : "s", join(names, " and "));
}

}  // namespace

DesignOptions design_options(const Value& values, const std::vector<std::string>& given) {
  DesignOptions options;
  options.style = values["style"].as_string();
  options.target = values["target"].as_string();
  options.top = values["top"].as_string();
  options.levels = values["levels"].as_double();
  if (!values["delay_weight"].is_null()) options.delay_weight = values["delay_weight"].as_double();
  options.argmax = values["argmax"].as_bool();
  options.effort = static_cast<int>(values["effort"].as_int());
  options.seed = static_cast<uint64_t>(values["seed"].as_int());
  options.style_options = Dict{};
  const EmitterRecord& own = Registry<EmitterRecord>::instance().get(options.style, "--style");
  for (const EmitterRecord* style : Registry<EmitterRecord>::instance().all())
    for (const Field& field : style->schema.fields)
      if (own.schema.find(field.name))
        options.style_options.dict().set(field.name, values[field.name]);
      else if (std::find(given.begin(), given.end(), field.name) != given.end())
        throw Error(
            "--" + option_name(field.name),
            fmt::format("is an option of {}", styles_with(field.name)),
            fmt::format("the style is {}: leave it out, or give another --style", options.style));
  return options;
}

}  // namespace mase
