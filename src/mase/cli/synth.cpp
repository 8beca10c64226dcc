// SPDX-License-Identifier: Apache-2.0
// ch synth: what Yosys makes of an emitted design.
#include "mase/cli/command.h"
#include "mase/hardware/design.h"

namespace mase::synth_command {
namespace {

int run(const Arguments& arguments) {
  const Synthesis result = synthesize_folder(arguments["folder"].as_string());
  if (arguments["json"].as_bool()) {
    fmt::print("{}\n", to_json(to_value(result), 2));
    return 0;
  }
  fmt::print(
      "yosys {}: {} LUTs, {} carry blocks, {} inverters, {} wide muxes, {} registers, {} "
      "levels (longest path, cells), {:.1f} s\n",
      result.flow, result.luts, result.carries, result.inverters, result.muxes, result.registers,
      result.levels, result.seconds);
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "synth",
    .group = CommandGroup::hardware,
    .summary = "Synthesise an emitted design with Yosys and count its cells",
    .positionals = {{"folder", "the folder that ch emit wrote"}},
    .options =
        {{{.name = "json", .type = FieldType::boolean, .default_value = false, .help = "as JSON"}}},
    .examples = {"ch synth mase_output/hardware"},
    .run = run,
}};

}  // namespace
}  // namespace mase::synth_command
