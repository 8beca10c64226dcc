// SPDX-License-Identifier: Apache-2.0
// ch emit: a quantised network as SystemVerilog, compared and proved before anything is said.
#include <algorithm>

#include "mase/base/table.h"
#include "mase/cli/hardware_setup.h"
#include "mase/hardware/tool.h"

namespace mase::emit_command {
namespace {

void print_trace(const Design& design) {
  Table table({"Pass", "LUTs (model)", "Levels (model)", "Adders", "Adder bits"});
  for (const OptimizeStep& step : design.trace)
    table.add({step.pass, fmt::format("{:.0f} -> {:.0f}", step.before.luts, step.after.luts),
               fmt::format("{:.0f} -> {:.0f}", step.before.levels, step.after.levels),
               fmt::format("{} -> {}", step.before.adders, step.after.adders),
               fmt::format("{} -> {}", step.before.adder_bits, step.after.adder_bits)});
  fmt::print("{}\n", table.str());
}

Value exactness_value(const LoweredNetwork& lowered) {
  List list;
  for (const LoweredNetwork::Exactness& entry : lowered.float32)
    list.push_back(
        Dict{{"node", entry.node}, {"sum_bits", entry.bits}, {"exact_in_float32", entry.exact}});
  return list;
}

int run(const Arguments& arguments) {
  const HardwareNetwork network = load_hardware_network(arguments);
  const Compared compared = compare_with_engine(network, arguments);
  const Design design = make_design(network.graph, read_design_options(arguments));
  const DesignRows rows = rows_of(design.graph, compared.inputs, compared.origin);
  Dict facts{{"source", network.origin}};
  Dict comparison{{"rows", compared.origin}};
  comparison.set("engine", compared.engine ? Value("engine = integers on every row, 0 mismatches")
                                           : Value("no engine: the network is given in integers"));
  facts.set("compared", comparison);
  if (network.source) {
    facts.set("software", Value::of(network.source->software));
    facts.set("float32", exactness_value(*network.source));
  }
  const std::string folder = arguments["output"].as_string();
  const auto files = [&](const std::string& proof) {
    facts.set("proved", proof);
    return design_files(design, rows, facts);
  };
  const std::string forms =
      "every sum of the optimised graph has the linear form of the network's own, for all inputs";
  write_design(folder, files(forms + "; the SystemVerilog was not read back"));
  if (!arguments["quiet"].as_bool()) print_trace(design);
  if (compared.engine) fmt::print("engine = integers on {}: 0 mismatches\n", compared.origin);
  if (network.source && !network.source->software.empty())
    fmt::print("in software, before the first rounding: {}\n",
               join(network.source->software, ", "));
  if (!arguments["prove"].as_bool()) {
    fmt::print("not read back (--no-prove)\n");
  } else if (!tool_exists("yosys")) {
    fmt::print("not read back: yosys is not installed (apt-get install yosys)\n");
  } else if (design.emitted.signals.empty()) {
    fmt::print("not read back: style {} has no proof\n", design.options.style);
  } else {
    const ReadBack proof = prove_folder(design, folder);
    if (!proof.fault.empty())
      throw Error(folder + "/rtl", "the SystemVerilog is not the graph: " + proof.fault);
    const std::string text = fmt::format(
        "Yosys reads the same graph, for all inputs: {} sums by their affine forms, {} functions "
        "by "
        "all values of their operands, {} slices and registers by their bits{}",
        proof.sums, proof.functions, proof.wires,
        proof.skipped.empty() ? ""
                              : fmt::format("; {} functions have too many operand bits and were "
                                            "only simulated: {}",
                                            proof.skipped.size(), join(proof.skipped, ", ")));
    fmt::print("{}\n", text);
    write_design(folder, files(forms + "; " + text));
  }
  const Estimate cost = estimate(design.graph);
  fmt::print("estimate: {:.0f} LUTs, {:.0f} levels, {:.1f} ns (a model, not placed){}\n", cost.luts,
             cost.levels, cost.delay_ns,
             design.emitted.clocked ? fmt::format(", {} register bits, {} cycles", cost.registers,
                                                  design.emitted.latency)
                                    : "");
  fmt::print("written to {}\n", folder);
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
    .positionals = hardware_positionals(),
    .options = {[] {
      std::vector<Field> fields = hardware_network_options();
      const std::vector<Field> more = design_options();
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
    .examples = {"ch emit --load best.mz --config configs/examples/hardware_8bit.toml",
                 "ch emit --load tests/golden/hardware/w4_toy.json --levels 12 --valid --argmax"},
    .run = run,
}};

}  // namespace
}  // namespace mase::emit_command
