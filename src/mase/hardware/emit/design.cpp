// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/emit/design.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/base/random.h"
#include "mase/hardware/cost/bill.h"
#include "mase/hardware/cost/estimate.h"
#include "mase/hardware/cost/quick_estimate.h"
#include "mase/hardware/emit/design_folder.h"
#include "mase/hardware/emit/target.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/lower/argmax.h"
#include "mase/hardware/optimize/pipeline.h"
#include "mase/hardware/prove/certificate.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

std::string make_file(const std::string& top, bool cells) {
  // Modules of a family's cells have plain ones beside them.
  const char* const sources = cells ? "rtl/$(TOP).sv sim/plain.sv" : "rtl/*.sv";
  return fmt::format(
      "# make sim: compares every row of sim/vectors.hex (Icarus Verilog). make cpp: the same for\n"
      "# the C++ header. make lint, make synth: Verilator and Yosys.\n"
      "TOP = {0}\n\n"
      "sim: sim/$(TOP)_tb.vvp\n\tcd sim && vvp $(TOP)_tb.vvp\n\n"
      "sim/$(TOP)_tb.vvp: sim/$(TOP)_tb.sv $(wildcard {1})\n"
      "\tiverilog -g2012 -o $@ $^\n\n"
      "cpp:\n\t$(CXX) -std=c++11 -O1 -o cpp/check cpp/check.cpp\n\tcd cpp && ./check\n\n"
      "lint:\n\tverilator --lint-only -Wall --top-module $(TOP) {1}\n\n"
      "synth:\n"
      "\tyosys -p 'read_verilog -sv rtl/*.sv; synth_xilinx -family xcup -flatten -top $(TOP); "
      "stat'\n\n"
      ".PHONY: sim cpp lint synth\n",
      top, sources);
}

std::string vivado_script(const std::string& top) {
  return fmt::format(
      "# vivado -mode batch -source vivado.tcl. Written for Vivado 2020 and later; not run here.\n"
      "read_verilog -sv [glob rtl/*.sv]\n"
      "synth_design -top {0} -part xcvu13p-flga2577-2-e -mode out_of_context\n"
      "create_clock -period 5.0 [get_ports -quiet clk]\n"
      "opt_design\nplace_design\nroute_design\n"
      "report_utilization -file utilization.rpt\nreport_timing_summary -file timing.rpt\n",
      top);
}

std::string quartus_script(const std::string& top) {
  return fmt::format(
      "# quartus_sh -t quartus.tcl. Written for Quartus Prime Pro; not run here.\n"
      "load_package flow\nproject_new {0} -overwrite\n"
      "set_global_assignment -name FAMILY \"Agilex 7\"\n"
      "set_global_assignment -name TOP_LEVEL_ENTITY {0}\n"
      "foreach file [glob rtl/*.sv] {{ set_global_assignment -name SYSTEMVERILOG_FILE $file }}\n"
      "execute_flow -compile\nproject_close\n",
      top);
}

// By places in the port's vector.
Value port_value(const IntegerGraph& graph, const std::vector<IntegerId>& ids,
                 const std::vector<int>& order, int element) {
  List ports;
  int at = 0;
  for (size_t place = 0; place < ids.size(); ++place) {
    const IntegerNode& node =
        graph.at(ids[order.empty() ? place : static_cast<size_t>(order[place])]);
    const int width = element > 0 ? element : std::max(1, node.range.width());
    ports.push_back(Dict{{"name", node.name},
                         {"low_bit", at},
                         {"width", width},
                         {"signed", node.range.is_signed()},
                         {"fraction_bits", node.frac},
                         {"lowest", node.range.low},
                         {"highest", node.range.high}});
    at += width;
  }
  return ports;
}

// Ctrl-C and kill are heard when a folder is whole.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t all;
    sigemptyset(&all);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&all, number);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_ = {};
};

Value cost_value(const GraphCost& cost) {
  return Dict{{"luts", estimated_luts(cost)},
              {"levels", cost.levels},
              {"adders", cost.adders},
              {"adder_bits", cost.adder_bits}};
}

}  // namespace

namespace {

constexpr double most_luts = 1e6;
constexpr size_t drawn_rows_held = 1000;
constexpr size_t surely_fewer_operands = 50000;

void refuse_too_large(const IntegerGraph& lowered, const std::string& style) {
  if (is_too_large(lowered))
    throw Error("--style " + style,
                fmt::format("the network would take about {:.1f} million LUTs, more than {:.0f} "
                            "million",
                            quick_estimate(lowered).luts / 1e6, most_luts / 1e6),
                "use --style stream, or fewer weights and bits (ch shrink)");
}

}  // namespace

bool is_too_large(const IntegerGraph& lowered) {
  size_t operands = 0;
  for (const IntegerNode& node : lowered.nodes) operands += node.inputs.size();
  return operands >= surely_fewer_operands && quick_estimate(lowered).luts > most_luts;
}

Design make_design(const IntegerGraph& lowered, const DesignOptions& options) {
  const EmitterRecord& style = Registry<EmitterRecord>::instance().get(options.style, "--style");
  const TargetRecord& target = Registry<TargetRecord>::instance().get(options.target, "--target");
  Design design;
  design.options = options;
  Problems problems;
  const Value own =
      validate(options.style_options.is_null() ? Value(Dict{}) : options.style_options,
               style.schema, "--style " + style.name, problems);
  problems.throw_if_any();
  const EmitOptions emit_options{options.top, own, target.cells};
  // A style's own tables come before the largest output is found: together they would be one.
  const bool own_passes = style.optimize != nullptr;
  design.graph = options.argmax && !own_passes ? with_argmax(lowered) : lowered;
  if (target.cells && style.as_lowered)
    throw Error("--target " + target.name,
                fmt::format("style {} has no sums to make chains of", style.name),
                "leave it out, or use --style unrolled");
  if (style.as_lowered) {
    if (options.levels > 0)
      throw Error("--levels", fmt::format("style {} has its own registers", style.name),
                  "leave it out");
  } else {
    if (!own_passes) refuse_too_large(lowered, style.name);
    Optimized optimized = own_passes ? style.optimize(design.graph, emit_options)
                                     : optimize(design.graph, {.effort = options.effort,
                                                               .seed = options.seed,
                                                               .delay_weight = options.delay_weight,
                                                               .carry_chains = target.cells});
    if (options.argmax && own_passes) optimized.graph = with_argmax(optimized.graph);
    design.network = options.argmax && own_passes ? with_argmax(lowered) : design.graph;
    design.trace = std::move(optimized.trace);
    design.graph =
        options.levels > 0 ? pipeline(optimized.graph, options.levels) : std::move(optimized.graph);
  }
  if (!is_module_name(options.top))
    throw Error("--top", fmt::format("'{}' is no name of a module", printable(options.top)),
                "use letters, digits and underscores");
  design.emitted = style.emit(design.graph, emit_options);
  if (design.emitted.cells) {
    for (const auto& [name, text] : target.modules()) {
      if (name == options.top)
        throw Error("--top", fmt::format("'{}' is a module of target {}", name, target.name),
                    "choose another name");
      design.emitted.files[fmt::format("rtl/{}.sv", name)] = text;
    }
    std::string plain = "/* verilator lint_off DECLFILENAME */\n";
    for (const auto& [name, text] : target.plain_modules()) plain += text;
    design.emitted.files["sim/plain.sv"] = plain;
    design.emitted.files["sim/cells.sv"] = target.models();
  }
  return design;
}

DesignRows rows_of(const IntegerGraph& graph, std::vector<int64_t> inputs, std::string origin) {
  DesignRows rows{std::move(inputs), {}, std::move(origin)};
  rows.outputs = IntegerProgram(graph).run(rows.inputs);
  return rows;
}

DesignRows random_rows(const IntegerGraph& graph, size_t count, uint64_t seed) {
  std::vector<int64_t> inputs;
  Random random(seed, "hardware rows");
  for (size_t row = 0; row < count; ++row)
    for (const IntegerId id : graph.inputs) {
      const IntegerRange& range = graph.at(id).range;
      if (row == 0)
        inputs.push_back(range.low);
      else if (row == 1)
        inputs.push_back(range.high);
      else
        inputs.push_back(range.low + static_cast<int64_t>(random.below(
                                         static_cast<uint64_t>(range.high - range.low) + 1)));
    }
  return rows_of(graph, std::move(inputs),
                 fmt::format("{} rows drawn over all input codes", count));
}

size_t hold_to_lowered(const Design& design, const IntegerGraph& lowered, const DesignRows& rows) {
  const IntegerGraph wanted = design.options.argmax ? with_argmax(lowered) : lowered;
  const IntegerProgram reference(wanted), emitted(design.graph);
  MASE_CHECK(reference.inputs() == emitted.inputs() && reference.outputs() == emitted.outputs(),
             "{} inputs and {} outputs became {} and {}", reference.inputs(), reference.outputs(),
             emitted.inputs(), emitted.outputs());
  for (size_t i = 0; i < wanted.outputs.size(); ++i)
    MASE_CHECK(wanted.at(wanted.outputs[i]).frac == design.graph.at(design.graph.outputs[i]).frac,
               "output {} has another binary point", i);
  const auto hold = [&](const std::vector<int64_t>& inputs, const std::vector<int64_t>& found,
                        const char* what) {
    const std::vector<int64_t> right = reference.run(inputs);
    MASE_CHECK(found.size() == right.size(), "{} results of the {}, not {}", found.size(), what,
               right.size());
    const auto [mine, other] = std::mismatch(right.begin(), right.end(), found.begin());
    const size_t at = static_cast<size_t>(mine - right.begin());
    MASE_CHECK(mine == right.end(), "row {}, output {}: the lowered graph has {}, the {} has {}",
               at / reference.outputs(), at % reference.outputs(), *mine, what, *other);
    return inputs.size() / reference.inputs();
  };
  const DesignRows drawn = random_rows(wanted, drawn_rows_held, design.options.seed);
  size_t count = 0;
  for (const std::vector<int64_t>* inputs : {&rows.inputs, &drawn.inputs}) {
    count += hold(*inputs, emitted.run(*inputs), "optimised graph");
    if (design.emitted.run) hold(*inputs, design.emitted.run(*inputs), "emitted design");
  }
  return count;
}

std::vector<GraphModule> graph_modules(const Design& design) {
  std::vector<GraphModule> modules = design.emitted.modules;
  if (!design.emitted.signals.empty())
    modules.push_back({design.options.top, design.graph, design.emitted.signals,
                       design.emitted.latency, design.emitted.valid,
                       design.emitted.cells ? design.options.target : "", design.network});
  return modules;
}

EmittedFiles design_files(const Design& design, const DesignRows& rows, const Dict& facts) {
  const std::string& top = design.options.top;
  EmittedFiles files = design.emitted.files;
  const std::string bench = fmt::format("sim/{}_tb.sv", top);
  if (!files.count(bench)) files[bench] = testbench_text(design.emitted, top);
  files["sim/vectors.hex"] = vectors_text(design.graph, design.emitted, rows.inputs, rows.outputs);
  files["Makefile"] = make_file(top, design.emitted.cells);
  files["vivado.tcl"] = vivado_script(top);
  files["quartus.tcl"] = quartus_script(top);
  if (!design.emitted.signals.empty())
    files["bill.json"] = to_json(to_value(bill_of(design.graph, design.emitted.signals,
                                                  files[fmt::format("rtl/{}.sv", top)])),
                                 2) +
                         "\n";
  files["graph.txt"] = to_text(design.graph);
  if (const std::vector<GraphModule> modules = graph_modules(design); !modules.empty())
    files["certificate.json"] = to_json(certificate_of(modules), 1) + "\n";
  files[fmt::format("cpp/{}.h", top)] = cpp_header_text(design.graph, top);
  files["cpp/check.cpp"] = cpp_check_text(design.graph, design.emitted, top);
  const Estimate cost = estimate(design);
  List trace;
  for (const OptimizeStep& step : design.trace)
    trace.push_back(Dict{{"pass", step.pass},
                         {"before", cost_value(step.before)},
                         {"after", cost_value(step.after)}});
  Dict manifest{
      {"network", design.graph.name},
      {"style", design.options.style},
      {"target", design.options.target},
      {"top", top},
      {"latency_cycles", design.emitted.latency},
      {"initiation_interval", design.emitted.interval},
      {"valid", design.emitted.valid},
      {"options", Dict{{"argmax", design.options.argmax}, {"levels", design.options.levels}}},
      {"inputs", port_value(design.graph, design.graph.inputs, design.emitted.input_order,
                            design.emitted.input_element)},
      {"outputs", port_value(design.graph, design.graph.outputs, design.emitted.output_order,
                             design.emitted.output_element)},
      {"estimate", to_value(cost)},
      {"passes", std::move(trace)},
      {"test_rows", rows.origin}};
  for (const auto& [key, value] : design.emitted.facts) manifest.set(key, value);
  for (const auto& [key, value] : facts) manifest.set(key, value);
  files["manifest.json"] = to_json(manifest, 2) + "\n";
  return files;
}

void write_design(const std::string& folder, const EmittedFiles& files) {
  const fs::path target(folder);
  std::error_code code;
  if (fs::exists(target, code) &&
      (!fs::is_directory(target, code) ||
       (!fs::is_empty(target, code) && !fs::exists(target / "manifest.json", code))))
    throw Error(folder, "is there and is no emitted design", "choose another --output");
  const SignalsWait until_it_is_whole;
  const fs::path fresh(folder + ".new"), old(folder + ".old");
  fs::remove_all(fresh, code);
  try {
    for (const auto& [name, text] : files) {
      make_directories((fresh / name).parent_path().string());
      write_file_atomically((fresh / name).string(), text);
    }
    fs::remove_all(old, code);
    if (fs::exists(target)) fs::rename(target, old);
    fs::rename(fresh, target);
    fs::remove_all(old, code);
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(fresh, code);
    throw Error(folder, error.code().message());
  } catch (...) {
    fs::remove_all(fresh, code);
    throw;
  }
}

}  // namespace mase
