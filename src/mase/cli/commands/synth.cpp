// SPDX-License-Identifier: Apache-2.0
// ch synth: what Yosys makes of an emitted design.
#include "mase/cli/command.h"
#include "mase/cli/next_steps.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/tools/place.h"

namespace mase::synth_command {
namespace {

// What is neither a look-up table nor a register.
std::string beside_logic(const Synthesis& result) {
  std::string text;
  if (result.dsps + result.memories > 0)
    text += fmt::format("{} multiplier blocks, {} memories of eight LUTs, ", result.dsps,
                        result.memories);
  if (result.shifts > 0) text += fmt::format("{} shift registers of a LUT, ", result.shifts);
  if (result.blocks > 0) text += fmt::format("{:.1f} memory blocks of 36 kbit, ", result.blocks);
  return text;
}

int run(const Arguments& arguments) {
  const std::string folder = arguments["folder"].as_string();
  const bool json = arguments["json"].as_bool();
  if (!arguments["place"].is_null()) {
    const Placement placed = place_folder(folder, arguments["place"].as_string());
    if (json)
      fmt::print("{}\n", to_json(to_value(placed), 2));
    else
      fmt::print(
          "{} on {}: {} of {} logic cells, {:.1f} MHz (placed and routed, between registers), "
          "{:.1f} s\n",
          placed.program, placed.part, placed.cells, placed.of, placed.mhz, placed.seconds);
    return 0;
  }
  const Synthesis result = synthesize_folder(folder);
  if (json) {
    fmt::print("{}\n", to_json(to_value(result), 2));
    return 0;
  }
  fmt::print(
      "yosys {}: {} LUTs, {} carry blocks, {} inverters, {} wide muxes, {} registers, {}{} "
      "levels (longest path, cells), {:.1f} s\n",
      result.flow, result.luts, result.carries, result.inverters, result.muxes, result.registers,
      beside_logic(result), result.levels, result.seconds);
  for (const std::string& line : next_steps({"ch report " + folder})) fmt::print("{}\n", line);
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "synth",
    .group = CommandGroup::hardware,
    .summary = "Synthesise an emitted design with Yosys and count its cells",
    .help = "With --place nextpnr places and routes it on a part that it knows: cells and clock "
            "rate then are those of that part, with registers before and behind the design.",
    .positionals = {{"folder", "the folder that ch emit wrote"}},
    .options =
        {{{.name = "json", .type = FieldType::boolean, .default_value = false, .help = "as JSON"},
          {.name = "place",
           .type = FieldType::text,
           .help = "place and route it on this part instead",
           .choices = Registry<PlacementPart>::instance().names()}}},
    .examples = {"ch synth mase_output/hardware", "ch synth mase_output/hardware --json",
                 "ch synth mase_output/hardware --place ecp5"},
    .run = run,
}};

}  // namespace
}  // namespace mase::synth_command
