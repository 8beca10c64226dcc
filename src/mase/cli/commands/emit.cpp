// SPDX-License-Identifier: Apache-2.0
// ch emit: a quantised network as SystemVerilog, compared and proved before anything is said.
#include "mase/base/figure.h"
#include "mase/base/table.h"
#include "mase/cli/hardware_setup.h"
#include "mase/cli/next_steps.h"
#include "mase/cli/terminal.h"
#include "mase/hardware/cost/estimate.h"

namespace mase::emit_command {
namespace {

void print_trace(const Design& design) {
  Table table({"Pass", "LUTs (estimate)", "Levels (estimate)", "Adders", "Adder bits"});
  for (const OptimizeStep& step : design.trace)
    table.add(
        {step.pass,
         fmt::format("{:.0f} -> {:.0f}", estimated_luts(step.before), estimated_luts(step.after)),
         fmt::format("{:.0f} -> {:.0f}", step.before.levels, step.after.levels),
         fmt::format("{} -> {}", step.before.adders, step.after.adders),
         fmt::format("{} -> {}", step.before.adder_bits, step.after.adder_bits)});
  fmt::print("{}\n", table.str());
}

int run(const Arguments& arguments) {
  const HardwareSpec spec = read_hardware_spec(arguments);
  // Said with the results: an error stays one line.
  std::vector<std::string> warnings;
  Observer observer;
  observer.log = [&](LogLevel level, const std::string& line) {
    if (level == LogLevel::warning) warnings.push_back(line);
  };
  const HardwareNetwork network = load_hardware_network(spec, observer);
  const Compared compared = compare_with_engine(network, spec);
  const std::string folder = arguments["output"].as_string();
  const EmitResult result = emit_hardware(network, compared, read_design_options(arguments, spec),
                                          folder, arguments["prove"].as_bool());
  const Logger log({}, true);
  for (const std::string& warning : warnings) log.warning(warning);
  if (!arguments["quiet"].as_bool()) print_trace(result.design);
  if (compared.engine)
    fmt::print("engine = integers on {}: 0 mismatches\n", compared.origin);
  else
    fmt::print("not compared with the engine: {}\n", compared.reason);
  if (compared.accuracy)
    fmt::print("accuracy on them: {}{}\n", figure_text(*compared.accuracy),
               network.accuracy_before ? fmt::format("; {} before the passes of the configuration",
                                                     figure_text(*network.accuracy_before))
                                       : "");
  if (!network.lowered.software.empty())
    fmt::print("in software, before the first rounding: {}\n",
               join(network.lowered.software, ", "));
  fmt::print("{}\n", result.proof_text);
  if (const std::string wraps = overflow_text(result.overflow); !wraps.empty())
    fmt::print("{}\n", wraps);
  const Estimate cost = estimate(result.design);
  const EmittedDesign& emitted = result.design.emitted;
  if (!cost.timed)
    fmt::print(
        "estimate: {:.0f} LUTs, {} multiplier blocks, {} register bits, {} bits of memory (a "
        "model, "
        "not synthesised); a row every {} clock cycles, {} from its first element to its last "
        "result\n{}",
        cost.luts, cost.dsps, cost.registers, cost.memory_bits, emitted.interval, emitted.latency,
        folding_note(network.lowered.graph, cost));
  else
    fmt::print("estimate: {:.0f} LUTs, {:.0f} levels, {:.1f} ns (a model, not placed){}\n",
               cost.luts, cost.levels, cost.delay_ns,
               emitted.clocked
                   ? fmt::format(", {} register bits, {} cycles", cost.registers, emitted.latency)
                   : "");
  fmt::print("written to {}\n", folder);
  if (compared.accuracy && network.accuracy_before)
    if (const std::string advice = lost_accuracy(*network.accuracy_before, *compared.accuracy);
        !advice.empty())
      fmt::print("{}\n", advice);
  for (const std::string& line :
       next_steps({"ch simulate " + folder, "ch synth " + folder, "ch report " + folder}))
    fmt::print("{}\n", line);
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "emit",
    .group = CommandGroup::hardware,
    .summary = "Write a quantised network as SystemVerilog",
    .help =
        "The network is lowered to integers, compared with the engine row by row, optimised, "
        "and written with its testbench, make file, scripts for Vivado and Quartus, a C++ header "
        "of the same function and a manifest that says what was proved and what compared. With "
        "Yosys installed the SystemVerilog is read back and proved to be the optimised graph.",
    .positionals = hardware_positionals("compare with the engine on all test rows of this data set "
                                        "(default: the one that the network's file names)"),
    .options = {[] {
      std::vector<Field> fields = hardware_network_options();
      fields.push_back(
          {.name = "rows",
           .type = FieldType::integer,
           .default_value = 2000,
           .help = "compare on so many drawn rows instead; without a data set that is the default",
           .minimum = 2,
           .maximum = 10000000});
      const std::vector<Field> more = design_fields();
      fields.insert(fields.end(), more.begin(), more.end());
      fields.push_back({.name = "output",
                        .type = FieldType::text,
                        .default_value = "mase_output/hardware",
                        .help = "the folder; an emitted design there is replaced"});
      fields.push_back({.name = "prove",
                        .type = FieldType::boolean,
                        .default_value = true,
                        .help = "read the SystemVerilog back with Yosys"});
      fields.push_back({.name = "quiet",
                        .type = FieldType::boolean,
                        .default_value = false,
                        .help = "print no table"});
      return fields;
    }()},
    .examples = {"ch emit quantised.mz",
                 "ch emit --load best.mz --config configs/examples/hardware_8bit.toml",
                 "ch emit --load tests/golden/hardware/w4_toy.json --levels 12 --valid --argmax"},
    .run = run,
}};

}  // namespace
}  // namespace mase::emit_command
