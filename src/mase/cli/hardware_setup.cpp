// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/hardware_setup.h"

#include <filesystem>

namespace mase {
namespace {

std::string text_of(const Arguments& arguments, const char* name) {
  return arguments[name].is_null() ? "" : arguments[name].as_string();
}

}  // namespace

std::vector<Positional> hardware_positionals() {
  return {{"model", "the network's name; a .mz or an imported file needs none", false}};
}

std::vector<Field> hardware_network_options() {
  return {{.name = "load",
           .type = FieldType::text,
           .help = "the quantised network (.mz), a checkpoint of MODEL, or a file that ch import "
                   "reads (NAME.json beside NAME.safetensors)",
           .required = true},
          {.name = "config",
           .type = FieldType::text,
           .help = "passes that quantise it (.toml); they run on the loaded network"},
          {.name = "dataset",
           .type = FieldType::text,
           .help = "compare with the engine on all test rows of this data set"},
          {.name = "rows",
           .type = FieldType::integer,
           .default_value = 2000,
           .help = "without a data set: so many drawn rows",
           .minimum = 2,
           .maximum = 10000000}};
}

std::vector<Field> design_options() {
  std::vector<Field> fields = {
      {.name = "style",
       .type = FieldType::text,
       .default_value = "unrolled",
       .help = "how it is built",
       .choices = Registry<EmitterRecord>::instance().names(),
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
       .default_value = 3,
       .help = "how much late results count against more bits",
       .minimum = 0,
       .maximum = 1000,
       .group = "design"}};
  for (const EmitterRecord* style : Registry<EmitterRecord>::instance().all())
    for (Field field : style->schema.fields) {
      field.group = fmt::format("design, style {}", style->name);
      fields.push_back(std::move(field));
    }
  return fields;
}

HardwareSpec read_hardware_spec(const Arguments& arguments) {
  HardwareSpec spec;
  spec.network.model = text_of(arguments, "model");
  spec.network.load = text_of(arguments, "load");
  spec.data.name = text_of(arguments, "dataset");
  if (!arguments["rows"].is_null()) spec.rows = arguments["rows"].as_int();
  spec.seed = static_cast<uint64_t>(arguments["seed"].as_int());
  if (const std::string config = text_of(arguments, "config"); !config.empty()) {
    const Value file = read_toml(config);
    if (file["passes"].is_null())
      throw Error(config, "lists no passes", "add a table such as [passes.quantize]");
    spec.passes = {pass_calls(file["passes"], "passes"),
                   std::filesystem::path(config).parent_path().string()};
  }
  return spec;
}

DesignOptions read_design_options(const Arguments& arguments) {
  DesignOptions options;
  options.style = arguments["style"].as_string();
  options.top = arguments["top"].as_string();
  options.levels = arguments["levels"].as_double();
  options.delay_weight = arguments["delay_weight"].as_double();
  options.argmax = arguments["argmax"].as_bool();
  options.effort = static_cast<int>(arguments["effort"].as_int());
  options.seed = static_cast<uint64_t>(arguments["seed"].as_int());
  // A style's own options, and none of another's.
  options.style_options = Dict{};
  for (const EmitterRecord* style : Registry<EmitterRecord>::instance().all())
    for (const Field& field : style->schema.fields)
      if (style->name == options.style)
        options.style_options.dict().set(field.name, arguments[field.name]);
      else if (arguments.was_typed(field.name))
        throw Error("--" + replace_all(field.name, "_", "-"),
                    fmt::format("is an option of style {}", style->name),
                    fmt::format("add --style {}", style->name));
  return options;
}

}  // namespace mase
