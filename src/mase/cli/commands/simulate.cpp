// SPDX-License-Identifier: Apache-2.0
// ch simulate: runs an emitted design's testbench and compares every row.
#include "mase/cli/command.h"
#include "mase/cli/next_steps.h"
#include "mase/hardware/emit/design.h"

namespace mase::simulate_command {
namespace {

int run(const Arguments& arguments) {
  const std::string folder = arguments["folder"].as_string();
  const Simulation result =
      simulate_folder(folder, arguments["simulator"].as_string(),
                      arguments["wave"].is_null() ? "" : arguments["wave"].as_string(),
                      arguments["rows"].is_null() ? 0 : arguments["rows"].as_int());
  fmt::print("{}: {} rows, {} mismatches; compiled in {:.1f} s, ran in {:.1f} s\n",
             result.simulator == "cpp" ? "C++ header (not the SystemVerilog)" : result.simulator,
             result.rows, result.mismatches, result.build_seconds, result.run_seconds);
  if (result.mismatches == 0) {
    for (const std::string& line : next_steps({"ch synth " + folder, "ch report " + folder}))
      fmt::print("{}\n", line);
    return 0;
  }
  fmt::print("{}", result.output);
  throw Error(folder, fmt::format("{} of {} rows differ from the interpreter", result.mismatches,
                                  result.rows));
}

const Register<CommandRecord> registered{{
    .name = "simulate",
    .group = CommandGroup::hardware,
    .summary = "Simulate an emitted design and compare every row",
    .positionals = {{"folder", "the folder that ch emit wrote"}},
    .options = {{{.name = "simulator",
                  .type = FieldType::text,
                  .default_value = "auto",
                  .help = "auto: Icarus Verilog for few rows of small designs, else Verilator; "
                          "cpp: the C++ header "
                          "instead of the SystemVerilog",
                  .choices = {"auto", "iverilog", "verilator", "cpp"}},
                 {.name = "rows",
                  .type = FieldType::integer,
                  .help = "the first so many rows only",
                  .minimum = 1},
                 {.name = "wave", .type = FieldType::text, .help = "a waveform to write (.vcd)"}}},
    .examples = {"ch simulate mase_output/hardware", "ch simulate mase_output/hardware --rows 100",
                 "ch simulate mase_output/hardware --wave rows.vcd"},
    .run = run,
}};

}  // namespace
}  // namespace mase::simulate_command
