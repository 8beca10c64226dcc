// SPDX-License-Identifier: Apache-2.0
// The stream style: a layer computes its products in several clock cycles, and layers pass
// elements on with valid and ready, as MASE's hardware does: a transfer is a rising clock with
// both. Ports, parameters and skid buffers have MASE's names; elements lie side by side in one
// vector, the first one lowest, because Icarus Verilog and Yosys take no arrays as ports. Planes
// come position by position, row by row, all channels of one side by side.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

#include "mase/hardware/emit/axi_stream.h"
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

// An element of a source as wide as the stage takes it.
std::string widened(const std::string& name, const ElementType& own, int count,
                    const ElementType& type) {
  if (own.width == type.width) return name;
  std::vector<std::string> parts;
  for (int i = count; i-- > 0;)
    parts.push_back(element_text(name, i, own.width, own.is_signed, type.width));
  return fmt::format("{{{}}}", join(parts, ", "));
}

class TopWriter {
 public:
  TopWriter(const std::string& top, const StreamNetwork& network,
            const std::vector<std::string>& modules, const StreamPlan& plan)
      : top_(top), stages_(network.stages), modules_(modules), plan_(plan) {}

  std::string text() {
    std::string text = head();
    text += forks_text(-1);
    for (size_t k = 0; k < stages_.size(); ++k) {
      text += "\n";
      for (size_t i = 0; i < stages_[k].sources.size(); ++i) text += edge_text(k, i);
      if (stages_[k].sources.size() == 2) text += join_text(k);
      const std::string in = modules_[k] + "_data_in_0", out = result(static_cast<int>(k));
      if (k + 1 < stages_.size())
        text += wires_text(out, plan_.stages[k].after * stages_[k].out.width);
      text += fmt::format(
          "  {0} {0}_inst (\n"
          "      .clk(clk), .rst(rst), .data_in_0({1}), .data_in_0_valid({1}_valid),\n"
          "      .data_in_0_ready({1}_ready), .data_out_0({2}), .data_out_0_valid({2}_valid),\n"
          "      .data_out_0_ready({2}_ready));\n",
          modules_[k], in, out);
      text += forks_text(static_cast<int>(k));
    }
    return text + "endmodule\n\n`default_nettype wire\n";
  }

 private:
  std::string head() const {
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
    std::string last_out;
    for (size_t k = 0; k < stages_.size(); ++k) {
      const std::string node = upper(modules_[k]);
      last_out = node + "_DATA_OUT_0";
      describe(node + "_DATA_IN_0", stages_[k].in, stages_[k].frac_in, stages_[k].channels(),
               plan_.stages[k].before);
      describe(last_out, stages_[k].out, stages_[k].frac_out, stages_[k].outputs(),
               plan_.stages[k].after);
      for (int axis = 0; axis < 2 && stages_[k].windows; ++axis) {
        parameters.push_back(fmt::format("    parameter {}_DATA_IN_0_TENSOR_SIZE_DIM_{} = {}", node,
                                         axis + 1, stages_[k].windows->size[1 - axis]));
        parameters.push_back(fmt::format("    parameter {}_TENSOR_SIZE_DIM_{} = {}", last_out,
                                         axis + 1, stages_[k].windows->result[1 - axis]));
      }
    }
    const auto port = [](const std::string& argument) {
      return fmt::format("[{0}_PARALLELISM_DIM_0*{0}_PRECISION_0-1:0]", argument);
    };
    // Where several stages read the inputs, a beat is no one stage's.
    const bool own = plan_.given == plan_.stages[0].before && stages_[0].sources.size() == 1;
    return fmt::format(
        "// {}: a row every {} clock cycles.\n"
        "// The parameters say what was emitted; other values need another emission.\n"
        "/* verilator lint_off UNUSEDPARAM */\n`default_nettype none\n\nmodule {} #(\n{}\n) (\n"
        "    input  logic clk,\n    input  logic rst,\n"
        "    input  logic {} data_in_0,\n    input  logic data_in_0_valid,\n"
        "    output logic data_in_0_ready,\n"
        "    output logic {} data_out_0,\n    output logic data_out_0_valid,\n"
        "    input  logic data_out_0_ready\n);\n",
        top_, plan_.interval, top_, join(parameters, ",\n"),
        own ? port(upper(modules_[0]) + "_DATA_IN_0")
            : fmt::format("[{}:0]", plan_.given * stages_[0].in.width - 1),
        port(last_out));
  }

  // The signals of what a source gives.
  std::string result(int source) const {
    if (source < 0) return "data_in_0";
    return source + 1 == static_cast<int>(stages_.size())
               ? "data_out_0"
               : modules_[static_cast<size_t>(source)] + "_data_out_0";
  }
  ElementType type_of(int source) const {
    return source < 0 ? stages_[0].in : stages_[static_cast<size_t>(source)].out;
  }
  // What stage k is given by its source number i.
  std::string given(size_t k, size_t i) const {
    const StreamSource& source = stages_[k].sources[i];
    return readers_of(stages_, source.stage).size() > 1 ? fmt::format("{}_from_{}", modules_[k], i)
                                                        : result(source.stage);
  }

  // What several read they take in the same clock cycle: each where all others can.
  std::string forks_text(int source) const {
    const std::vector<std::pair<size_t, size_t>> readers = readers_of(stages_, source);
    if (readers.size() < 2) return "";
    const std::string from = result(source);
    const int width = type_of(source).width;
    std::string text;
    std::vector<std::string> all;
    for (const auto& [k, i] : readers) all.push_back(given(k, i) + "_ready");
    for (size_t r = 0; r < readers.size(); ++r) {
      const auto& [k, i] = readers[r];
      const StreamSource& own = stages_[k].sources[i];
      std::vector<std::string> others = all;
      others[r] = from + "_valid";
      text += wires_text(given(k, i), own.count * width);
      text += fmt::format("  assign {0} = {1}[{2}:{3}];\n  assign {0}_valid = {4};\n", given(k, i),
                          from, (own.first + own.count) * width - 1, own.first * width,
                          join(others, " & "));
    }
    return text + fmt::format("  assign {}_ready = {};\n", from, join(all, " & "));
  }

  std::string edge_text(size_t k, size_t i) const {
    const StreamStage& stage = stages_[k];
    const StagePlan& own = plan_.stages[k];
    const StreamSource& source = stage.sources[i];
    const bool joined = stage.sources.size() == 2;
    const int width = type_of(source.stage).width, bits = own.given[i] * width;
    const int64_t depth = own.buffers[i];
    const std::string kept =
        fmt::format("{}_{}", modules_[k], joined ? fmt::format("side_{}", i) : "data_in_0");
    const std::string deep = depth == 2 ? ""
                                        : fmt::format(
                                              ", .DEPTH({0}), .INDEX_WIDTH({1}), "
                                              ".LAST({1}'d{2})",
                                              depth, index_bits(depth), depth - 1);
    // Elements of a position one after another, where the stage takes fewer.
    const bool split = !joined && own.given[i] != own.before;
    const std::string first = split ? kept + "_position" : kept;
    std::string text = between_text(
        depth == 2 ? "skid_buffer" : "fifo", fmt::format(".DATA_WIDTH({}){}", bits, deep),
        fmt::format("{}_buffer{}", modules_[k], joined ? fmt::format("_{}", i) : ""), given(k, i),
        first, bits);
    if (!split) return text;
    const int count = own.given[i] / own.before;
    text += between_text("elements",
                         fmt::format(".DATA_WIDTH({0}), .COUNT({1}), .INDEX_WIDTH({2}), "
                                     ".LAST({2}'d{3})",
                                     own.before * width, count, index_bits(count), count - 1),
                         modules_[k] + "_elements", first, kept + "_part", own.before * width);
    return text + between_text("skid_buffer", fmt::format(".DATA_WIDTH({})", own.before * width),
                               modules_[k] + "_part", kept + "_part", kept, own.before * width);
  }

  // Both sides of a position at once, the first one lowest.
  std::string join_text(size_t k) const {
    const StreamStage& stage = stages_[k];
    const std::string in = modules_[k] + "_data_in_0", one = modules_[k] + "_side_0",
                      other = modules_[k] + "_side_1";
    const auto wide = [&](size_t i, const std::string& name) {
      return widened(name, type_of(stage.sources[i].stage), plan_.stages[k].given[i], stage.in);
    };
    return wires_text(in, plan_.stages[k].before * stage.in.width) +
           fmt::format(
               "  assign {0} = {{{4}, {3}}};\n  assign {0}_valid = {1}_valid & {2}_valid;\n"
               "  assign {1}_ready = {0}_ready & {2}_valid;\n"
               "  assign {2}_ready = {0}_ready & {1}_valid;\n",
               in, one, other, wide(0, one), wide(1, other));
  }

  const std::string& top_;
  const std::vector<StreamStage>& stages_;
  const std::vector<std::string>& modules_;
  const StreamPlan& plan_;
};

// What the stages and what stands between them claim of their handshakes.
Value flow_of(const StreamNetwork& network, const StreamPlan& plan,
              const std::vector<std::string>& modules, const std::string& top) {
  const std::vector<StreamStage>& stages = network.stages;
  List list;
  for (size_t k = 0; k < stages.size(); ++k) {
    const StreamStage& stage = stages[k];
    const StagePlan& own = plan.stages[k];
    List sources;
    for (size_t i = 0; i < stage.sources.size(); ++i) {
      const StreamSource& source = stage.sources[i];
      const ElementType& type =
          source.stage < 0 ? stages[0].in : stages[static_cast<size_t>(source.stage)].out;
      const bool split = stage.sources.size() == 1 && own.given[i] != own.before;
      sources.push_back(Dict{{"from", source.stage},
                             {"depth", own.buffers[i]},
                             {"parts", split ? own.given[i] / own.before : 1},
                             {"first_bit", source.first * type.width},
                             {"bits", own.given[i] * type.width},
                             {"element_bits", type.width},
                             {"signed", type.is_signed}});
    }
    Dict schedule;
    if (stage.windows) {
      const IntegerGraph::Sliding& s = *stage.windows;
      const auto both = [](const int64_t* numbers) {
        return Value::of(std::vector<int64_t>{numbers[0], numbers[1]});
      };
      schedule = Dict{{"size", both(s.size)},         {"kernel", both(s.kernel)},
                      {"stride", both(s.stride)},     {"before", both(s.before)},
                      {"dilation", both(s.dilation)}, {"result", both(s.result)}};
    } else {
      schedule = Dict{{"in", stage.inputs() / own.before}, {"out", stage.outputs() / own.after}};
    }
    list.push_back(Dict{{"module", modules[k]},
                        {"sources", std::move(sources)},
                        {"element_bits", stage.in.width},
                        {"schedule", std::move(schedule)}});
  }
  return Dict{{"top", top},
              {"beats", network.input_order.size() / static_cast<size_t>(plan.given)},
              {"stages", std::move(list)}};
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
    for (size_t i = 0; i < stages[k].sources.size(); ++i) {
      if (plan.stages[k].buffers[i] > 2) design.files["rtl/fifo.sv"] = fifo_text;
      if (stages[k].sources.size() == 1 && plan.stages[k].given[i] != plan.stages[k].before)
        design.files["rtl/elements.sv"] = elements_text;
    }
  }
  design.files["rtl/skid_buffer.sv"] = skid_buffer_text;
  design.files[fmt::format("rtl/{}.sv", options.top)] =
      TopWriter(options.top, *network, modules, plan).text();
  design.run = [network](const std::vector<int64_t>& rows) { return run_stages(*network, rows); };
  design.latency = static_cast<int>(plan.latency);
  design.interval = plan.interval;
  design.clocked = true;
  design.input_order = network->input_order;
  design.output_order = network->output_order;
  design.input_element = stages[0].in.width;
  design.output_element = stages.back().out.width;
  design.input_bits = static_cast<int>(network->input_order.size()) * design.input_element;
  design.output_bits = static_cast<int>(stages.back().row_outputs()) * design.output_element;
  Estimate estimate{.luts = plan.luts,
                    .registers = plan.registers,
                    .dsps = plan.dsps,
                    .memory_bits = plan.memory_bits,
                    .timed = false,
                    .method = "a model of folded layers",
                    .layers = {}};
  design.facts.set("flow", flow_of(*network, plan, modules, options.top));
  List layers;
  for (size_t k = 0; k < stages.size(); ++k) {
    const StreamStage& stage = stages[k];
    const StagePlan& own = plan.stages[k];
    List reads;
    for (const StreamSource& source : stage.sources)
      reads.push_back(source.stage < 0 ? "inputs" : stages[static_cast<size_t>(source.stage)].name);
    Dict layer{{"name", stage.name},
               {"reads", std::move(reads)},
               {"inputs", stage.row_inputs()},
               {"outputs", stage.row_outputs()},
               {"parallelism_in", own.before},
               {"parallelism_out", own.after},
               {"cycles", own.cycles},
               {"buffers", Value::of(own.buffers)},
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
  // Beside rtl/, whose modules tools take as they stand.
  const auto row_beats = [](size_t elements, int beat) {
    return static_cast<int64_t>(elements) / beat;
  };
  const int given = plan.stages.back().after;
  design.files[fmt::format("axi/{}_axis.sv", options.top)] =
      axi_stream_text(options.top,
                      {row_beats(network->input_order.size(), plan.given),
                       plan.given * design.input_element, false},
                      {row_beats(network->output_order.size(), given),
                       given * design.output_element, given == 1 && stages.back().out.is_signed});
  design.estimate = std::move(estimate);
  design.files[fmt::format("sim/{}_tb.sv", options.top)] = stream_testbench_text(
      design, options.top,
      {plan.given, static_cast<int>(network->input_order.size()), plan.stages.back().after,
       static_cast<int>(stages.back().row_outputs())});
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
