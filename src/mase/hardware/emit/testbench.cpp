// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/emit/verilog_text.h"

namespace mase {
namespace {

// Codes packed side by side, the first one lowest, as hexadecimal digits.
std::string packed(const IntegerGraph& graph, const std::vector<IntegerId>& ids,
                   const std::vector<int>& order, int element, const int64_t* codes) {
  std::vector<bool> bits;
  for (size_t place = 0; place < ids.size(); ++place) {
    const size_t k = order.empty() ? place : static_cast<size_t>(order[place]);
    const int width = element > 0 ? element : std::max(1, graph.at(ids[k]).range.width());
    for (int bit = 0; bit < width; ++bit) bits.push_back((codes[k] >> bit & 1) != 0);
  }
  while (bits.size() % 4 != 0) bits.push_back(false);
  std::string text;
  for (size_t first = bits.size(); first > 0; first -= 4) {
    int nibble = 0;
    for (size_t k = 0; k < 4; ++k) nibble |= static_cast<int>(bits[first - 4 + k]) << k;
    text += "0123456789abcdef"[nibble];
  }
  return text;
}

}  // namespace

std::string vectors_text(const IntegerGraph& graph, const EmittedDesign& design,
                         const std::vector<int64_t>& inputs, const std::vector<int64_t>& outputs) {
  const size_t rows = graph.inputs.empty() ? 0 : inputs.size() / graph.inputs.size();
  MASE_CHECK(outputs.size() == rows * graph.outputs.size(), "{} results for {} rows",
             outputs.size(), rows);
  std::string text;
  for (size_t row = 0; row < rows; ++row)
    text += fmt::format("{} {}\n",
                        packed(graph, graph.inputs, design.input_order, design.input_element,
                               inputs.data() + row * graph.inputs.size()),
                        packed(graph, graph.outputs, design.output_order, design.output_element,
                               outputs.data() + row * graph.outputs.size()));
  return text;
}

std::string testbench_text(const EmittedDesign& design, const std::string& top) {
  const int latency = design.latency;
  std::string text = fmt::format(
      "// Drives {0} with the rows of vectors.hex (inputs, then outputs as the interpreter has\n"
      "// them), one each clock cycle, and compares every output bit.\n"
      "`timescale 1ns / 1ps\n\n"
      "module {0}_tb;\n"
      "  logic clk = 1'b0;\n"
      "  logic {1}in_data = 0;\n"
      "  wire {2}out_data;\n",
      top, sliced_range(design.input_bits), sliced_range(design.output_bits));
  if (design.valid) text += "  logic rst = 1'b1;\n  logic in_valid = 1'b0;\n  wire out_valid;\n";
  text += fmt::format(
      "  logic {1}wanted [0:{0}];\n"
      "  logic {1}read_out;\n"
      "  logic {2}read_in;\n"
      "  logic [{0}:0] filled = 0;\n"
      "  integer file, got, i, rows, mismatches;\n"
      "  string dump;\n\n"
      "  {3} dut (",
      latency, sliced_range(design.output_bits), sliced_range(design.input_bits), top);
  if (design.clocked) text += ".clk(clk), ";
  if (design.valid) text += ".rst(rst), .in_valid(in_valid), .out_valid(out_valid), ";
  text += ".in_data(in_data), .out_data(out_data));\n\n  initial begin\n";
  text += "    rows = 0;\n    mismatches = 0;\n";
  text += fmt::format(
      "    if ($value$plusargs(\"dump=%s\", dump)) begin\n"
      "      $dumpfile(dump);\n      $dumpvars(0, {}_tb);\n    end\n",
      top);
  text +=
      "    file = $fopen(\"vectors.hex\", \"r\");\n"
      "    if (file == 0) begin\n"
      "      $display(\"FAIL: vectors.hex cannot be opened\");\n      $finish;\n    end\n";
  if (design.valid)
    text += "    clk = 1'b0; #1; clk = 1'b1; #1; clk = 1'b0; #1; rst = 1'b0; in_valid = 1'b1;\n";
  // Rows enter before the rising edge; results that have gone through all stages are compared
  // before the next one.
  text += fmt::format(
      "    got = $fscanf(file, \"%h %h\", read_in, read_out);\n"
      "    while (got == 2 || filled[{0}:0] != 0) begin\n"
      "      in_data = read_in;\n"
      "      wanted[0] = read_out;\n"
      "      filled[0] = got == 2;\n"
      "      #1;\n",
      latency);
  if (latency == 0) {
    text +=
        "      rows = rows + 1;\n"
        "      if (out_data !== wanted[0]) begin\n"
        "        if (mismatches < 10)\n"
        "          $display(\"row %0d: %h, not %h\", rows - 1, out_data, wanted[0]);\n"
        "        mismatches = mismatches + 1;\n      end\n"
        "      filled[0] = 1'b0;\n";
  } else {
    if (design.valid) text += "      in_valid = filled[0];\n";
    text += fmt::format(
        "      clk = 1'b1;\n      #1;\n"
        "      for (i = {0}; i > 0; i = i - 1) begin\n"
        "        wanted[i] = wanted[i-1];\n        filled[i] = filled[i-1];\n      end\n"
        "      filled[0] = 1'b0;\n"
        "      if (filled[{0}]) begin\n"
        "        rows = rows + 1;\n"
        "        if (out_data !== wanted[{0}]{1}) begin\n"
        "          if (mismatches < 10)\n"
        "            $display(\"row %0d: %h, not %h\", rows - 1, out_data, wanted[{0}]);\n"
        "          mismatches = mismatches + 1;\n        end\n      end\n"
        "      clk = 1'b0;\n      #1;\n",
        latency, design.valid ? " || out_valid !== 1'b1" : "");
  }
  text +=
      "      if (got == 2) got = $fscanf(file, \"%h %h\", read_in, read_out);\n"
      "    end\n"
      "    $fclose(file);\n"
      "    if (rows == 0) $display(\"FAIL: no rows\");\n"
      "    else if (mismatches == 0) $display(\"PASS: %0d rows, 0 mismatches\", rows);\n"
      "    else $display(\"FAIL: %0d rows, %0d mismatches\", rows, mismatches);\n"
      "    $finish;\n  end\nendmodule\n";
  return text;
}

}  // namespace mase
