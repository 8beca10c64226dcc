// SPDX-License-Identifier: Apache-2.0
// The stream style: a layer at a time computes its products in several clock cycles, and layers
// pass elements on with valid and ready, as MASE's hardware does: a transfer is a rising clock with
// both. Ports, parameters and skid buffers have MASE's names; elements lie side by side in one
// vector, the first one lowest, because Icarus Verilog and Yosys take no arrays as ports. Planes
// come position by position, row by row, all channels of one side by side.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/stream/stage_text.h"

namespace mase::emit_stream_style {
namespace {

std::string upper(const std::string& name) {
  std::string text = name;
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string wires_text(const std::string& name, int bits) {
  return fmt::format("  wire {}{};\n  wire {}_valid, {}_ready;\n", vector_range(bits), name, name,
                     name);
}

// What stands between two stages, and the wires behind it.
std::string between_text(const std::string& module, const std::string& parameters,
                         const std::string& instance, const std::string& before,
                         const std::string& after, int bits) {
  return wires_text(after, bits) +
         fmt::format(
             "  {0} #({1}) {2} (\n"
             "      .clk(clk), .rst(rst), .data_in({3}), .data_in_valid({3}_valid),\n"
             "      .data_in_ready({3}_ready), .data_out({4}), .data_out_valid({4}_valid),\n"
             "      .data_out_ready({4}_ready));\n",
             module, parameters, instance, before, after);
}

std::string top_text(const std::string& top, const std::vector<StreamStage>& stages,
                     const std::vector<std::string>& modules, const StreamPlan& plan) {
  std::vector<std::string> parameters;
  const auto describe = [&](const std::string& argument, const ElementType& type, int frac,
                            int size, int parallelism) {
    for (const auto& [key, value] :
         std::vector<std::pair<std::string, int>>{{"PRECISION_0", type.width},
                                                  {"PRECISION_1", frac},
                                                  {"TENSOR_SIZE_DIM_0", size},
                                                  {"PARALLELISM_DIM_0", parallelism}})
      parameters.push_back(fmt::format("    parameter {}_{} = {}", argument, key, value));
  };
  std::string first_in, last_out;
  for (size_t k = 0; k < stages.size(); ++k) {
    const std::string node = upper(modules[k]);
    if (k == 0) first_in = node + "_DATA_IN_0";
    last_out = node + "_DATA_OUT_0";
    describe(node + "_DATA_IN_0", stages[k].in, stages[k].frac_in, stages[k].channels(),
             plan.stages[k].before);
    describe(last_out, stages[k].out, stages[k].frac_out, stages[k].outputs(),
             plan.stages[k].after);
    for (int axis = 0; axis < 2 && stages[k].windows; ++axis) {
      parameters.push_back(fmt::format("    parameter {}_DATA_IN_0_TENSOR_SIZE_DIM_{} = {}", node,
                                       axis + 1, stages[k].windows->size[1 - axis]));
      parameters.push_back(fmt::format("    parameter {}_TENSOR_SIZE_DIM_{} = {}", last_out,
                                       axis + 1, stages[k].windows->result[1 - axis]));
    }
  }
  const auto port = [](const std::string& argument) {
    return fmt::format("[{0}_PARALLELISM_DIM_0*{0}_PRECISION_0-1:0]", argument);
  };
  std::string text = fmt::format(
      "// {}: layers one after another, a row every {} clock cycles.\n"
      "// The parameters say what was emitted; other values need another emission.\n"
      "/* verilator lint_off UNUSEDPARAM */\n`default_nettype none\n\nmodule {} #(\n{}\n) (\n"
      "    input  logic clk,\n    input  logic rst,\n"
      "    input  logic {} data_in_0,\n    input  logic data_in_0_valid,\n"
      "    output logic data_in_0_ready,\n"
      "    output logic {} data_out_0,\n    output logic data_out_0_valid,\n"
      "    input  logic data_out_0_ready\n);\n",
      top, plan.interval, top, join(parameters, ",\n"), port(first_in), port(last_out));
  for (size_t k = 0; k < stages.size(); ++k) {
    const StagePlan& own = plan.stages[k];
    const int width = stages[k].in.width, given = k == 0 ? own.before : plan.stages[k - 1].after;
    const std::string before = k == 0 ? "data_in_0" : modules[k - 1] + "_data_out_0";
    const std::string kept = modules[k] + "_data_in_0";
    const std::string after = k + 1 == stages.size() ? "data_out_0" : modules[k] + "_data_out_0";
    const std::string depth = own.buffer == 2
                                  ? ""
                                  : fmt::format(", .DEPTH({0}), .INDEX_WIDTH({1}), .LAST({1}'d{2})",
                                                own.buffer, index_bits(own.buffer), own.buffer - 1);
    text += "\n";
    // Elements of a position one after another, where the stage takes fewer.
    const std::string first = given == own.before ? kept : kept + "_position";
    text += between_text(own.buffer == 2 ? "skid_buffer" : "fifo",
                         fmt::format(".DATA_WIDTH({}){}", given * width, depth),
                         modules[k] + "_buffer", before, first, given * width);
    if (given != own.before) {
      const int count = given / own.before;
      text += between_text("elements",
                           fmt::format(".DATA_WIDTH({0}), .COUNT({1}), .INDEX_WIDTH({2}), "
                                       ".LAST({2}'d{3})",
                                       own.before * width, count, index_bits(count), count - 1),
                           modules[k] + "_elements", first, kept + "_part", own.before * width);
      text += between_text("skid_buffer", fmt::format(".DATA_WIDTH({})", own.before * width),
                           modules[k] + "_part", kept + "_part", kept, own.before * width);
    }
    if (k + 1 < stages.size()) text += wires_text(after, own.after * stages[k].out.width);
    text += fmt::format(
        "  {0} {0}_inst (\n"
        "      .clk(clk), .rst(rst), .data_in_0({1}), .data_in_0_valid({1}_valid),\n"
        "      .data_in_0_ready({1}_ready), .data_out_0({2}), .data_out_0_valid({2}_valid),\n"
        "      .data_out_0_ready({2}_ready));\n",
        modules[k], kept, after);
  }
  return text + "endmodule\n\n`default_nettype wire\n";
}

EmittedDesign emit(const IntegerGraph& graph, const EmitOptions& options) {
  const auto network = std::make_shared<const StreamNetwork>(stream_network(graph));
  const std::vector<StreamStage>& stages = network->stages;
  const Multipliers multipliers =
      options.values["multipliers"] == "luts" ? Multipliers::luts : Multipliers::any;
  const Value& cycles = options.values["cycles"];
  const StreamPlan plan =
      plan_stream(*network, cycles.is_null() ? 0 : cycles.as_int(), multipliers);
  EmittedDesign design;
  std::vector<std::string> modules;
  for (size_t k = 0; k < stages.size(); ++k) {
    std::string module = verilog_name(stages[k].name);
    const std::vector<std::string> taken = {options.top, "skid_buffer", "fifo", "elements"};
    if (std::count(taken.begin(), taken.end(), module) ||
        std::count(modules.begin(), modules.end(), module))
      module += fmt::format("_{}", k);
    modules.push_back(module);
    StageText text = stages[k].windows
                         ? window_stage_text(stages[k], plan.stages[k], module)
                         : vector_stage_text(stages[k], plan.stages[k], module, multipliers);
    design.files.merge(text.files);
    std::move(text.modules.begin(), text.modules.end(), std::back_inserter(design.modules));
    const int given = k == 0 ? plan.stages[0].before : plan.stages[k - 1].after;
    if (plan.stages[k].buffer > 2) design.files["rtl/fifo.sv"] = fifo_text;
    if (given != plan.stages[k].before) design.files["rtl/elements.sv"] = elements_text;
  }
  design.files["rtl/skid_buffer.sv"] = skid_buffer_text;
  design.files[fmt::format("rtl/{}.sv", options.top)] =
      top_text(options.top, stages, modules, plan);
  design.run = [network](const std::vector<int64_t>& rows) { return run_stages(*network, rows); };
  design.latency = static_cast<int>(plan.latency);
  design.interval = plan.interval;
  design.clocked = true;
  design.input_order = network->input_order;
  design.output_order = network->output_order;
  design.input_element = stages[0].in.width;
  design.output_element = stages.back().out.width;
  design.input_bits = static_cast<int>(stages[0].row_inputs()) * design.input_element;
  design.output_bits = static_cast<int>(stages.back().row_outputs()) * design.output_element;
  Estimate estimate{.luts = plan.luts,
                    .registers = plan.registers,
                    .dsps = plan.dsps,
                    .memory_bits = plan.memory_bits,
                    .timed = false,
                    .method = "a model of folded layers",
                    .layers = {}};
  List layers;
  for (size_t k = 0; k < stages.size(); ++k) {
    const StreamStage& stage = stages[k];
    const StagePlan& own = plan.stages[k];
    Dict layer{{"name", stage.name},
               {"inputs", stage.row_inputs()},
               {"outputs", stage.row_outputs()},
               {"parallelism_in", own.before},
               {"parallelism_out", own.after},
               {"cycles", own.cycles},
               {"buffer", own.buffer},
               {"luts", static_cast<int64_t>(std::llround(own.luts))},
               {"dsps", own.dsps},
               {"memory_bits", own.memory_bits}};
    if (own.products) {
      layer.set("digits", own.products->digits);
      layer.set("sums", own.products->tables ? "look-up tables of six bits" : "shared additions");
    }
    layers.push_back(std::move(layer));
    estimate.layers.push_back({stage.name, own.luts, 0, 0});
  }
  design.facts.set("layers", std::move(layers));
  design.estimate = std::move(estimate);
  design.files[fmt::format("sim/{}_tb.sv", options.top)] = stream_testbench_text(
      design, options.top,
      {plan.stages.front().before, static_cast<int>(stages[0].row_inputs()),
       plan.stages.back().after, static_cast<int>(stages.back().row_outputs())});
  return design;
}

const Register<EmitterRecord> registered{{
    .name = "stream",
    .summary = "layers one after another, each in several clock cycles, with valid and ready",
    .help = "For networks too large to unroll, and for images: convolutions and pools take a "
            "position each clock cycle. The parallelism of every layer is the cheapest that takes "
            "a row every so many clock cycles.",
    .schema = {{{.name = "cycles",
                 .type = FieldType::integer,
                 .help = "clock cycles between rows, at most (default: 64; of images as many as "
                         "they have positions)",
                 .minimum = 1,
                 .maximum = 1000000000},
                {.name = "multipliers",
                 .type = FieldType::text,
                 .default_value = "any",
                 .help = "products of linear layers: what synthesis takes for them (any), or "
                         "look-up tables and no multiplier blocks (luts)",
                 .choices = {"any", "luts"}}}},
    .as_lowered = true,
    .emit = emit,
}};

}  // namespace
}  // namespace mase::emit_stream_style
