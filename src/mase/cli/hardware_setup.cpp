// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/hardware_setup.h"

#include <filesystem>

#include "mase/cli/options.h"

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
  std::vector<Field> fields = {
      {.name = "load",
       .type = FieldType::text,
       .help = "the quantised network (.mz), a checkpoint of MODEL, or a file that ch import "
               "reads (NAME.json beside NAME.safetensors)",
       .required = true},
      {.name = "config",
       .type = FieldType::text,
       .help = "passes that quantise it (.toml); they run on the loaded network"}};
  for (Field& field : comparison_fields()) fields.push_back(std::move(field));
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
    spec.passes = {pass_calls(passes_of_file(config, keys_of_all_commands()), "passes"),
                   std::filesystem::path(config).parent_path().string()};
  }
  return spec;
}

DesignOptions read_design_options(const Arguments& arguments) {
  return design_options(arguments.values, {arguments.typed.begin(), arguments.typed.end()});
}

}  // namespace mase
