// SPDX-License-Identifier: Apache-2.0
// The stream style: a layer at a time computes its products in several clock cycles, and layers
// pass elements on with valid and ready, as MASE's hardware does: a transfer is a rising clock with
// both. Ports, parameters and skid buffers have MASE's names; elements lie side by side in one
// vector, the first one lowest, because Icarus Verilog and Yosys take no arrays as ports. Weights
// are case statements: nothing is read from files.
#include <algorithm>
#include <bit>
#include <memory>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/emit/stream_stages.h"
#include "mase/hardware/emit/verilog_text.h"

namespace mase::emit_stream_style {
namespace {

constexpr const char* skid_buffer =
    "// Two elements deep: ready is a register, so that it does not ripple through all layers.\n"
    "`default_nettype none\n\n"
    "module skid_buffer #(\n    parameter DATA_WIDTH = 8\n) (\n"
    "    input  logic clk,\n    input  logic rst,\n"
    "    input  logic [DATA_WIDTH-1:0] data_in,\n    input  logic data_in_valid,\n"
    "    output logic data_in_ready,\n"
    "    output logic [DATA_WIDTH-1:0] data_out,\n    output logic data_out_valid,\n"
    "    input  logic data_out_ready\n);\n"
    "  logic [DATA_WIDTH-1:0] kept;\n  logic full;\n"
    "  assign data_in_ready = ~full;\n"
    "  always_ff @(posedge clk)\n"
    "    if (rst) begin\n      full <= 1'b0;\n      data_out_valid <= 1'b0;\n"
    "    end else if (~data_out_valid | data_out_ready) begin\n"
    "      data_out <= full ? kept : data_in;\n"
    "      data_out_valid <= full | data_in_valid;\n"
    "      full <= 1'b0;\n"
    "    end else if (data_in_valid & ~full) begin\n"
    "      kept <= data_in;\n      full <= 1'b1;\n    end\n"
    "endmodule\n\n`default_nettype wire\n";

int index_bits(int64_t count) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1))));
}

std::string slice(const std::string& name, int index, int width) {
  return fmt::format("{}[{}:{}]", name, (index + 1) * width - 1, index * width);
}

// Whole numbers of one width side by side, the first one lowest, as one literal.
std::string packed_literal(const std::vector<int64_t>& numbers, int width) {
  std::vector<bool> bits;
  for (const int64_t number : numbers)
    for (int bit = 0; bit < width; ++bit) bits.push_back((number >> bit & 1) != 0);
  const size_t count = bits.size();
  while (bits.size() % 4 != 0) bits.push_back(false);
  std::string digits;
  for (size_t first = bits.size(); first > 0; first -= 4) {
    int nibble = 0;
    for (size_t k = 0; k < 4; ++k) nibble |= static_cast<int>(bits[first - 4 + k]) << k;
    digits += "0123456789abcdef"[nibble];
  }
  return fmt::format("{}'h{}", count, digits);
}

// A table by index: `case` with one line an entry.
std::string rom(const std::string& name, const std::string& address, int address_bits,
                const std::vector<std::vector<int64_t>>& entries, int width) {
  const int total = static_cast<int>(entries[0].size()) * width;
  if (entries.size() == 1)
    return fmt::format("  wire {}{} = {};\n", sliced_range(total), name,
                       packed_literal(entries[0], width));
  std::string text = fmt::format("  logic {}{};\n  always_comb\n    case ({})\n",
                                 sliced_range(total), name, address);
  for (size_t k = 0; k < entries.size(); ++k)
    text += fmt::format(
        "      {}: {} = {};\n",
        k + 1 == entries.size() ? std::string("default") : fmt::format("{}'d{}", address_bits, k),
        name, packed_literal(entries[k], width));
  return text + "    endcase\n";
}

class StageWriter {
 public:
  StageWriter(const StreamStage& stage, std::string module, int before, int after)
      : stage_(stage),
        module_(std::move(module)),
        before_(before),
        after_(after),
        in_depth_(stage.inputs() / before),
        out_depth_(stage.outputs() / after),
        weight_width_(stage.weight_width()),
        sum_width_(stage.sum_width()) {}

  std::string text() const {
    std::string out = fmt::format(
        "// {}: {} features to {}, {} by {} products each clock cycle, {} cycles a row.\n"
        "// Inputs of {} bits ({}, {} after the point), weights of {}, sums of {}, results of {}"
        " ({}, {} after the point).\n// Sums are wide enough for every order; results may not need "
        "their highest bits.\n/* verilator lint_off UNUSEDSIGNAL */\n`default_nettype "
        "none\n\nmodule {} (\n"
        "    input  logic clk,\n    input  logic rst,\n"
        "    input  logic {}data_in_0,\n    input  logic data_in_0_valid,\n"
        "    output logic data_in_0_ready,\n"
        "    output logic {}data_out_0,\n    output logic data_out_0_valid,\n"
        "    input  logic data_out_0_ready\n);\n",
        stage_.name, stage_.inputs(), stage_.outputs(), before_, after_, in_depth_ * out_depth_,
        stage_.in.width, stage_.in.is_signed ? "signed" : "from zero up", stage_.frac_in,
        weight_width_, sum_width_, stage_.out.width,
        stage_.out.is_signed ? "signed" : "from zero up", stage_.frac_out, module_,
        vector_range(before_ * stage_.in.width), vector_range(after_ * stage_.out.width));
    out += control_text() + operand_text() + sums_text() + functions_text() + registers_text();
    return out + "endmodule\n\n`default_nettype wire\n";
  }

 private:
  std::string control_text() const {
    std::string out =
        "  // A finished sum waits here until the output register is free.\n"
        "  logic done;\n"
        "  wire move = done & (~data_out_0_valid | data_out_0_ready);\n";
    if (in_depth_ > 1) out += fmt::format("  logic [{}:0] beat;\n", index_bits(in_depth_) - 1);
    if (out_depth_ > 1) {
      out += fmt::format(
          "  // Two rows: one is computed with, several times over, while the next one arrives.\n"
          "  logic [{0}:0] group{1};\n"
          "  logic [1:0] full;\n  logic arriving, computing;\n",
          index_bits(out_depth_) - 1, functions_differ() ? ", done_group" : "");
      if (in_depth_ > 1) out += fmt::format("  logic [{}:0] arrived;\n", index_bits(in_depth_) - 1);
      out += fmt::format(
          "  wire last_arrival = {};\n"
          "  wire take = data_in_0_valid & data_in_0_ready;\n"
          "  assign data_in_0_ready = ~full[arriving];\n"
          "  wire step = full[computing] & (~done | move);\n"
          "  wire last_group = group == {}'d{};\n",
          in_depth_ > 1 ? fmt::format("arrived == {}'d{}", index_bits(in_depth_), in_depth_ - 1)
                        : std::string("1'b1"),
          index_bits(out_depth_), out_depth_ - 1);
    } else {
      out +=
          "  wire step = data_in_0_valid & (~done | move);\n"
          "  assign data_in_0_ready = ~done | move;\n";
    }
    out += in_depth_ > 1 ? fmt::format("  wire last_beat = beat == {}'d{};\n",
                                       index_bits(in_depth_), in_depth_ - 1)
                         : "  wire last_beat = 1'b1;\n";
    return out;
  }

  // This cycle's elements and weights.
  std::string operand_text() const {
    const int bits = before_ * stage_.in.width;
    std::string out;
    if (out_depth_ == 1)
      out += fmt::format("  wire {}elements = data_in_0;\n", sliced_range(bits));
    else
      out += fmt::format("  logic {0}rows [0:{1}];\n  wire {0}elements = rows[{2}];\n",
                         sliced_range(bits), row_places() - 1, place("computing", "beat"));
    std::vector<std::vector<int64_t>> words, biases;
    for (int group = 0; group < out_depth_; ++group) {
      biases.emplace_back();
      for (int lane = 0; lane < after_; ++lane)
        biases.back().push_back(stage_.constants[index(group, lane)]);
      for (int beat = 0; beat < in_depth_; ++beat) {
        words.emplace_back();
        for (int lane = 0; lane < after_; ++lane)
          for (int k = 0; k < before_; ++k)
            words.back().push_back(
                stage_.weights[static_cast<size_t>(beat * before_ + k)][index(group, lane)]);
      }
    }
    const bool both = in_depth_ > 1 && out_depth_ > 1;
    int address_bits = index_bits(in_depth_ > 1 ? in_depth_ : out_depth_);
    std::string address = in_depth_ > 1 ? "beat" : "group";
    if (both) {
      // {group, beat} with holes where the number of beats is no power of two.
      address = "{group, beat}";
      address_bits = index_bits(in_depth_) + index_bits(out_depth_);
      std::vector<std::vector<int64_t>> spread;
      for (int group = 0; group < out_depth_; ++group)
        for (int beat = 0; beat < 1 << index_bits(in_depth_); ++beat)
          spread.push_back(
              words[static_cast<size_t>(group * in_depth_ + std::min(beat, in_depth_ - 1))]);
      words = std::move(spread);
    }
    out += rom("weights", address, address_bits, words, weight_width_);
    out += rom("biases", "group", index_bits(out_depth_), biases, sum_width_);
    return out;
  }

  std::string sums_text() const {
    std::string out;
    for (int k = 0; k < before_; ++k)
      out += fmt::format("  wire signed [{}:0] x_{} = {};\n", sum_width_ - 1, k,
                         widened("elements", k, stage_.in.width, stage_.in.is_signed));
    const std::string first =
        in_depth_ > 1 ? "beat == " + fmt::format("{}'d0", index_bits(in_depth_)) : std::string();
    for (int lane = 0; lane < after_; ++lane) {
      out += fmt::format("  logic signed [{}:0] sum_{};\n", sum_width_ - 1, lane);
      std::vector<std::string> terms;
      for (int k = 0; k < before_; ++k) {
        out += fmt::format(
            "  wire signed [{0}:0] w_{1}_{2} = {3};\n"
            "  wire signed [{0}:0] p_{1}_{2} = x_{2} * w_{1}_{2};\n",
            sum_width_ - 1, lane, k, widened("weights", lane * before_ + k, weight_width_, true));
        terms.push_back(fmt::format("p_{}_{}", lane, k));
      }
      const std::string bias = slice("biases", lane, sum_width_);
      out += fmt::format(
          "  wire signed [{0}:0] base_{1} = {2};\n"
          "  wire signed [{0}:0] next_{1} = base_{1} + {3};\n",
          sum_width_ - 1, lane,
          first.empty() ? bias : fmt::format("{} ? {} : sum_{}", first, bias, lane),
          join(terms, " + "));
    }
    return out;
  }

  // Every lane's function, or one of several by the group.
  std::string functions_text() const {
    std::string out;
    const int width = stage_.out.width;
    for (int lane = 0; lane < after_; ++lane) {
      std::vector<int> used;
      for (int group = 0; group < out_depth_; ++group)
        used.push_back(stage_.functions[index(group, lane)]);
      std::vector<int> distinct = used;
      std::sort(distinct.begin(), distinct.end());
      distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
      for (const int f : distinct) {
        const IntegerGraph& graph = stage_.graphs[static_cast<size_t>(f)];
        const int in = std::max(1, graph.at(graph.inputs[0]).range.width());
        const IntegerNode& result = graph.at(graph.outputs[0]);
        const int own = std::max(1, result.range.width());
        const std::string name = fmt::format("f_{}_{}", lane, f);
        out += fmt::format(
            "  wire {0}{1}_out;\n"
            "  {2}_f{3} {1} (.in_data(sum_{4}[{5}:0]), .out_data({1}_out));\n"
            "  wire {6}{1}_y = {7};\n",
            vector_range(own), name, module_, f, lane, in - 1, vector_range(width),
            extended({name + "_out", result.range}, 0, 0, width));
      }
      if (distinct.size() == 1) {
        out += fmt::format("  wire {}y_{} = f_{}_{}_y;\n", vector_range(width), lane, lane,
                           distinct[0]);
        continue;
      }
      out += fmt::format("  logic {}y_{};\n  always_comb\n    case (done_group)\n",
                         vector_range(width), lane);
      for (int group = 0; group < out_depth_; ++group)
        out += fmt::format("      {}: y_{} = f_{}_{}_y;\n",
                           group + 1 == out_depth_
                               ? std::string("default")
                               : fmt::format("{}'d{}", index_bits(out_depth_), group),
                           lane, lane, used[static_cast<size_t>(group)]);
      out += "    endcase\n";
    }
    return out;
  }

  std::string registers_text() const {
    std::vector<std::string> results;
    for (int lane = after_; lane-- > 0;) results.push_back(fmt::format("y_{}", lane));
    std::string out =
        "\n  always_ff @(posedge clk)\n    if (rst) begin\n      done <= 1'b0;\n"
        "      data_out_0_valid <= 1'b0;\n";
    if (in_depth_ > 1) out += fmt::format("      beat <= {}'d0;\n", index_bits(in_depth_));
    if (out_depth_ > 1) {
      out += fmt::format(
          "      group <= {}'d0;\n      full <= 2'b00;\n      arriving <= 1'b0;\n"
          "      computing <= 1'b0;\n",
          index_bits(out_depth_));
      if (in_depth_ > 1) out += fmt::format("      arrived <= {}'d0;\n", index_bits(in_depth_));
    }
    out += fmt::format(
        "    end else begin\n      if (move) begin\n        data_out_0 <= {{{}}};\n"
        "        data_out_0_valid <= 1'b1;\n        done <= 1'b0;\n"
        "      end else if (data_out_0_ready) data_out_0_valid <= 1'b0;\n"
        "      if (step) begin\n",
        join(results, ", "));
    for (int lane = 0; lane < after_; ++lane)
      out += fmt::format("        sum_{0} <= next_{0};\n", lane);
    if (in_depth_ > 1)
      out += fmt::format("        beat <= last_beat ? {0}'d0 : beat + {0}'d1;\n",
                         index_bits(in_depth_));
    out += "        if (last_beat) begin\n          done <= 1'b1;\n";
    if (out_depth_ > 1)
      out += fmt::format(
          "{1}          group <= last_group ? {0}'d0 : group + {0}'d1;\n"
          "          if (last_group) begin\n            full[computing] <= 1'b0;\n"
          "            computing <= ~computing;\n          end\n",
          index_bits(out_depth_), functions_differ() ? "          done_group <= group;\n" : "");
    out += "        end\n      end\n";
    if (out_depth_ > 1) {
      out += fmt::format("      if (take) begin\n        rows[{}] <= data_in_0;\n",
                         place("arriving", "arrived"));
      if (in_depth_ > 1)
        out += fmt::format("        arrived <= last_arrival ? {0}'d0 : arrived + {0}'d1;\n",
                           index_bits(in_depth_));
      out +=
          "        if (last_arrival) begin\n          full[arriving] <= 1'b1;\n"
          "          arriving <= ~arriving;\n        end\n      end\n";
    }
    return out + "    end\n";
  }

  // An element as wide as the sums; modulo 2^width nothing above them counts.
  std::string widened(const std::string& name, int index, int width, bool is_signed) const {
    const int low = index * width, high = low + std::min(width, sum_width_) - 1;
    const std::string bits = fmt::format("{}[{}:{}]", name, high, low);
    if (width >= sum_width_) return bits;
    const std::string top = is_signed ? fmt::format("{}[{}]", name, high) : "1'b0";
    return fmt::format("{{{{{}{{{}}}}}, {}}}", sum_width_ - width, top, bits);
  }

  // Whether a lane has to know whose sum it holds.
  bool functions_differ() const {
    for (int lane = 0; lane < after_; ++lane)
      for (int group = 1; group < out_depth_; ++group)
        if (stage_.functions[index(group, lane)] != stage_.functions[index(0, lane)]) return true;
    return false;
  }

  // Where a beat of one of the two rows is kept.
  int row_places() const { return in_depth_ > 1 ? 2 << index_bits(in_depth_) : 2; }
  std::string place(const std::string& which, const std::string& beat) const {
    return in_depth_ > 1 ? fmt::format("{{{}, {}}}", which, beat) : which;
  }

  size_t index(int group, int lane) const { return static_cast<size_t>(group * after_ + lane); }

  const StreamStage& stage_;
  std::string module_;
  int before_, after_, in_depth_, out_depth_, weight_width_, sum_width_;
};

std::string upper(const std::string& name) {
  std::string text = name;
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
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
    describe(node + "_DATA_IN_0", stages[k].in, stages[k].frac_in, stages[k].inputs(),
             plan.parallelism[k]);
    describe(last_out, stages[k].out, stages[k].frac_out, stages[k].outputs(),
             plan.parallelism[k + 1]);
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
    const int bits = plan.parallelism[k] * stages[k].in.width;
    const std::string before = k == 0 ? "data_in_0" : modules[k - 1] + "_data_out_0";
    const std::string kept = modules[k] + "_data_in_0";
    const std::string after = k + 1 == stages.size() ? "data_out_0" : modules[k] + "_data_out_0";
    text += fmt::format("\n  wire {}{};\n  wire {}_valid, {}_ready;\n", vector_range(bits), kept,
                        kept, kept);
    text += fmt::format(
        "  skid_buffer #(.DATA_WIDTH({0})) {1}_buffer (\n"
        "      .clk(clk), .rst(rst), .data_in({2}), .data_in_valid({2}_valid),\n"
        "      .data_in_ready({2}_ready), .data_out({1}), .data_out_valid({1}_valid),\n"
        "      .data_out_ready({1}_ready));\n",
        bits, kept, before);
    if (k + 1 < stages.size())
      text += fmt::format("  wire {}{};\n  wire {}_valid, {}_ready;\n",
                          vector_range(plan.parallelism[k + 1] * stages[k].out.width), after, after,
                          after);
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
  const auto all = std::make_shared<const std::vector<StreamStage>>(stream_stages(graph));
  const std::vector<StreamStage>& stages = *all;
  const StreamPlan plan = plan_stream(stages, options.values["cycles"].as_int());
  const EmitterRecord& unrolled = Registry<EmitterRecord>::instance().get("unrolled");
  EmittedDesign design;
  std::vector<std::string> modules;
  for (size_t k = 0; k < stages.size(); ++k) {
    std::string module = verilog_name(stages[k].name);
    if (module == options.top || std::count(modules.begin(), modules.end(), module))
      module += fmt::format("_{}", k);
    modules.push_back(module);
    std::string text =
        StageWriter(stages[k], module, plan.parallelism[k], plan.parallelism[k + 1]).text();
    for (size_t f = 0; f < stages[k].graphs.size(); ++f) {
      const std::string name = fmt::format("{}_f{}", module, f);
      EmittedDesign function =
          unrolled.emit(stages[k].graphs[f], {name, Value(Dict{{"valid", false}})});
      design.files.merge(function.files);  // rtl/NAME.sv
    }
    design.files[fmt::format("rtl/{}.sv", module)] = std::move(text);
  }
  design.files["rtl/skid_buffer.sv"] = skid_buffer;
  design.files[fmt::format("rtl/{}.sv", options.top)] =
      top_text(options.top, stages, modules, plan);
  design.run = [all](const std::vector<int64_t>& rows) { return run_stages(*all, rows); };
  design.latency = static_cast<int>(plan.latency);
  design.interval = plan.interval;
  design.clocked = true;
  design.input_element = stages[0].in.width;
  design.output_element = stages.back().out.width;
  design.input_bits = stages[0].inputs() * design.input_element;
  design.output_bits = stages.back().outputs() * design.output_element;
  List layers;
  for (size_t k = 0; k < stages.size(); ++k)
    layers.push_back(Dict{{"name", stages[k].name},
                          {"inputs", stages[k].inputs()},
                          {"outputs", stages[k].outputs()},
                          {"parallelism_in", plan.parallelism[k]},
                          {"parallelism_out", plan.parallelism[k + 1]},
                          {"cycles", plan.cycles[k]}});
  design.facts.set("layers", std::move(layers));
  design.estimate = Estimate{.luts = plan.luts,
                             .registers = plan.registers,
                             .dsps = plan.dsps,
                             .timed = false,
                             .method = "a model of folded layers",
                             .layers = {}};
  design.files[fmt::format("sim/{}_tb.sv", options.top)] =
      stream_testbench_text(design, options.top,
                            {plan.parallelism.front(), stages[0].inputs(), plan.parallelism.back(),
                             stages.back().outputs()});
  return design;
}

const Register<EmitterRecord> registered{{
    .name = "stream",
    .summary = "layers one after another, each in several clock cycles, with valid and ready",
    .help = "For networks too large to unroll. The parallelism of every layer is the cheapest that "
            "takes a row every so many clock cycles.",
    .schema = {{{.name = "cycles",
                 .type = FieldType::integer,
                 .default_value = 64,
                 .help = "clock cycles between rows, at most",
                 .minimum = 1,
                 .maximum = 1000000000}}},
    .as_lowered = true,
    .emit = emit,
}};

}  // namespace
}  // namespace mase::emit_stream_style
