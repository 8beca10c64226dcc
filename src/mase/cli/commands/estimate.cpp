// SPDX-License-Identifier: Apache-2.0
// ch estimate: what a quantised network costs in hardware, without synthesis.
#include <cstdio>

#include "mase/base/table.h"
#include "mase/cli/hardware_setup.h"
#include "mase/cli/json_option.h"
#include "mase/hardware/cost/quick_estimate.h"

namespace mase::estimate_command {
namespace {

// Whether counts have to do. A network that no design could be made of is counted too.
bool is_quick(const Arguments& arguments, const IntegerGraph& lowered) {
  const bool asks_for_design = [&] {
    for (const Field& field : design_fields())
      if (arguments.typed.count(field.name) > 0) return true;
    return false;
  }();
  if (!arguments["quick"].as_bool()) return !asks_for_design && is_too_large(lowered);
  if (asks_for_design)
    throw Error("--quick", "knows nothing of options of a design", "leave one of them out");
  return true;
}

int run(const Arguments& arguments) {
  HardwareSpec spec = read_hardware_spec(arguments);
  // Nothing is compared: data are for passes that look at some.
  spec.data.noted = false;
  if (spec.passes.calls.empty() && !arguments.was_typed("dataset")) spec.data = {};
  Observer observer;
  observer.log = [](LogLevel level, const std::string& line) {
    if (level == LogLevel::warning) std::fputs(("WARNING  " + line + "\n").c_str(), stderr);
  };
  const HardwareNetwork network = load_hardware_network(spec, observer);
  const bool quick = is_quick(arguments, network.lowered.graph);
  Design design;
  if (!quick) design = make_design(network.lowered.graph, read_design_options(arguments, spec));
  const Estimate cost = quick ? quick_estimate(network.lowered.graph) : estimate(design);
  if (!arguments["json"].is_null()) {
    write_json(arguments["json"].as_string(), to_value(cost));
    return 0;
  }
  if (!cost.timed) {
    fmt::print(
        "{:.0f} LUTs, {} multiplier blocks, {} register bits, {} bits of memory (a model, not "
        "synthesised); a row every {} clock cycles, {} from its first element to its last result\n",
        cost.luts, cost.dsps, cost.registers, cost.memory_bits, design.emitted.interval,
        design.emitted.latency);
    fmt::print("{}\n{}", stated_error(cost), folding_note(network.lowered.graph, cost));
    return 0;
  }
  Table table({"Layer", "LUTs", "Levels", "Adders"});
  for (const Estimate::Layer& layer : cost.layers)
    table.add({layer.name, fmt::format("{:.0f}", layer.luts), fmt::format("{:.0f}", layer.levels),
               std::to_string(layer.adders)});
  table.add({"total", fmt::format("{:.0f}", cost.luts), fmt::format("{:.0f}", cost.levels), ""});
  fmt::print("{}\ndelay {:.1f} ns (a model, not placed), {} register bits\nfrom {}; {}\n",
             table.str(), cost.delay_ns, cost.registers, cost.method, stated_error(cost));
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "estimate",
    .group = CommandGroup::hardware,
    .summary = "Estimate what a quantised network costs in hardware",
    .help =
        "The figures of ch emit and of area_luts in a search: the network is optimised as they "
        "do, and the model is calibrated on designs synthesised with Yosys. Networks too large to "
        "unroll are counted as --quick does: digits and widths. The figures say which, and how "
        "far they were from Yosys.",
    // Nothing is compared here.
    .positionals = hardware_positionals("rows for passes that look at data"),
    .options = {[] {
      std::vector<Field> fields = hardware_network_options();
      const std::vector<Field> more = design_fields();
      fields.insert(fields.end(), more.begin(), more.end());
      fields.push_back({.name = "quick",
                        .type = FieldType::boolean,
                        .default_value = false,
                        .help = "in milliseconds: the graph that the least effort gives, of large "
                                "networks counts of digits and widths"});
      fields.push_back(json_field("write the figures as JSON"));
      return fields;
    }()},
    .examples = {"ch estimate quantised.mz",
                 "ch estimate --load best.mz --config configs/examples/hardware_8bit.toml",
                 "ch estimate --load tests/golden/hardware/w4_toy.json --json -"},
    .run = run,
}};

}  // namespace
}  // namespace mase::estimate_command
