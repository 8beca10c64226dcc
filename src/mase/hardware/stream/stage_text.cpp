// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/stream/stage_text.h"

#include <algorithm>
#include <bit>

#include "mase/hardware/emit/verilog_text.h"

namespace mase {

const char* const skid_buffer_text =
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

const char* const fifo_text =
    "// A first-in, first-out buffer for stages that take beats at other times than they come.\n"
    "`default_nettype none\n\n"
    "module fifo #(\n    parameter DATA_WIDTH = 8,\n    parameter DEPTH = 4,\n"
    "    parameter INDEX_WIDTH = 2,\n"
    "    parameter [INDEX_WIDTH-1:0] LAST = 3\n) (\n"
    "    input  logic clk,\n    input  logic rst,\n"
    "    input  logic [DATA_WIDTH-1:0] data_in,\n    input  logic data_in_valid,\n"
    "    output logic data_in_ready,\n"
    "    output logic [DATA_WIDTH-1:0] data_out,\n    output logic data_out_valid,\n"
    "    input  logic data_out_ready\n);\n"
    "  logic [DATA_WIDTH-1:0] beats [0:DEPTH-1];\n"
    "  logic [INDEX_WIDTH-1:0] first, next;\n"
    "  // Where both are equal it is full or empty.\n"
    "  logic full;\n"
    "  assign data_in_ready = ~full;\n"
    "  assign data_out_valid = full | (first != next);\n"
    "  assign data_out = beats[first];\n"
    "  wire put = data_in_valid & data_in_ready;\n"
    "  wire taken = data_out_valid & data_out_ready;\n"
    "  wire [INDEX_WIDTH-1:0] behind_next = next == LAST ? {INDEX_WIDTH{1'b0}} : next + 1'b1;\n"
    "  always_ff @(posedge clk) if (put) beats[next] <= data_in;\n"
    "  always_ff @(posedge clk)\n"
    "    if (rst) begin\n      first <= {INDEX_WIDTH{1'b0}};\n      next <= {INDEX_WIDTH{1'b0}};\n"
    "      full <= 1'b0;\n"
    "    end else begin\n"
    "      if (put) next <= behind_next;\n"
    "      if (taken) first <= first == LAST ? {INDEX_WIDTH{1'b0}} : first + 1'b1;\n"
    "      if (put & ~taken) full <= behind_next == first;\n"
    "      else if (taken & ~put) full <= 1'b0;\n"
    "    end\n"
    "endmodule\n\n`default_nettype wire\n";

const char* const elements_text =
    "// The elements of a position, some after others.\n"
    "`default_nettype none\n\n"
    "module elements #(\n    parameter DATA_WIDTH = 8,\n    parameter COUNT = 2,\n"
    "    parameter INDEX_WIDTH = 1,\n"
    "    parameter [INDEX_WIDTH-1:0] LAST = 1\n) (\n"
    "    input  logic clk,\n    input  logic rst,\n"
    "    input  logic [COUNT*DATA_WIDTH-1:0] data_in,\n    input  logic data_in_valid,\n"
    "    output logic data_in_ready,\n"
    "    output logic [DATA_WIDTH-1:0] data_out,\n    output logic data_out_valid,\n"
    "    input  logic data_out_ready\n);\n"
    "  logic [INDEX_WIDTH-1:0] index;\n"
    "  assign data_out = data_in[index*DATA_WIDTH +: DATA_WIDTH];\n"
    "  assign data_out_valid = data_in_valid;\n"
    "  assign data_in_ready = data_out_ready & (index == LAST);\n"
    "  always_ff @(posedge clk)\n"
    "    if (rst) index <= {INDEX_WIDTH{1'b0}};\n"
    "    else if (data_in_valid & data_out_ready)\n"
    "      index <= index == LAST ? {INDEX_WIDTH{1'b0}} : index + 1'b1;\n"
    "endmodule\n\n`default_nettype wire\n";

int index_bits(int64_t count) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1))));
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

std::string element_text(const std::string& name, int index, int width, bool is_signed, int to) {
  const int low = index * width, high = low + std::min(width, to) - 1;
  const std::string bits = fmt::format("{}[{}:{}]", name, high, low);
  if (width >= to) return bits;
  const std::string top = is_signed ? fmt::format("{}[{}]", name, high) : "1'b0";
  return fmt::format("{{{{{}{{{}}}}}, {}}}", to - width, top, bits);
}

std::string function_text(const StreamStage& stage, const std::string& module, int function,
                          int lane, const std::string& name) {
  const IntegerGraph& graph = stage.graphs[static_cast<size_t>(function)];
  const int in = std::max(1, graph.at(graph.inputs[0]).range.width());
  const IntegerNode& result = graph.at(graph.outputs[0]);
  return fmt::format(
      "  wire {0}{1}_out;\n"
      "  {2}_f{3} {1} (.in_data(sum_{4}[{5}:0]), .out_data({1}_out));\n"
      "  wire {6}{1}_y = {7};\n",
      vector_range(std::max(1, result.range.width())), name, module, function, lane, in - 1,
      vector_range(stage.out.width),
      extended({name + "_out", result.range}, 0, 0, stage.out.width));
}

void StageText::add(const IntegerGraph& graph, const std::string& name) {
  EmittedDesign design = Registry<EmitterRecord>::instance()
                             .get("unrolled")
                             .emit(graph, {name, Value(Dict{{"valid", false}})});
  files.merge(design.files);
  modules.push_back({name, graph, std::move(design.signals)});
}

StageText function_modules(const StreamStage& stage, const std::string& module) {
  StageText text;
  for (size_t f = 0; f < stage.graphs.size(); ++f)
    text.add(stage.graphs[f], fmt::format("{}_f{}", module, f));
  return text;
}

std::string stage_head(const std::string& remarks, const std::string& module, int bits_in,
                       int bits_out) {
  return fmt::format(
      "{}/* verilator lint_off UNUSEDSIGNAL */\n`default_nettype none\n\nmodule {} (\n"
      "    input  logic clk,\n    input  logic rst,\n"
      "    input  logic {}data_in_0,\n    input  logic data_in_0_valid,\n"
      "    output logic data_in_0_ready,\n"
      "    output logic {}data_out_0,\n    output logic data_out_0_valid,\n"
      "    input  logic data_out_0_ready\n);\n",
      remarks, module, vector_range(bits_in), vector_range(bits_out));
}

}  // namespace mase
