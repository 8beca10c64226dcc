// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/emit/verilog_text.h"

namespace mase {

std::string stream_testbench_text(const EmittedDesign& design, const std::string& top,
                                  const StreamShape& shape) {
  const int in_beats = shape.inputs / shape.in, out_beats = shape.outputs / shape.out;
  const int in_bits = shape.in * design.input_element, out_bits = shape.out * design.output_element;
  std::string text = fmt::format(
      "// Drives {0} with the rows of vectors.hex, {1} elements at a time, and compares every\n"
      "// element that leaves it. Both sides stall at random, the output until all before it\n"
      "// is full, too, unless +nostall is given; what is valid must stay until it is taken.\n"
      "`timescale 1ns / 1ps\n\n"
      "module {0}_tb;\n"
      "  logic clk = 1'b0, rst = 1'b1;\n"
      "  logic {2}in_data = 0;\n  logic in_valid = 1'b0;\n  wire in_ready;\n"
      "  wire {3}out_data;\n  wire out_valid;\n  logic out_ready = 1'b0;\n"
      "  logic {4}row_in;\n  logic {5}row_out;\n"
      "  // Rows on their way; no design here holds as many.\n"
      "  logic {5}wanted [0:1023];\n"
      "  logic {3}held;\n  logic holding = 1'b0;\n"
      "  logic [31:0] noise = 32'h2545f491;\n"
      "  logic stalls, taken, given, ended;\n"
      "  integer file, got, sent, beat_in, beat_out, rows, mismatches, cycles, idle, broken, "
      "rest;\n"
      "  string dump;\n\n"
      "  {0} dut (.clk(clk), .rst(rst), .data_in_0(in_data), .data_in_0_valid(in_valid),\n"
      "      .data_in_0_ready(in_ready), .data_out_0(out_data), .data_out_0_valid(out_valid),\n"
      "      .data_out_0_ready(out_ready));\n\n",
      top, shape.in, sliced_range(in_bits), sliced_range(out_bits), sliced_range(design.input_bits),
      sliced_range(design.output_bits));
  text +=
      "  initial begin\n"
      "    sent = 0; beat_in = 0; beat_out = 0; rows = 0; mismatches = 0; cycles = 0; idle = 0;\n"
      "    broken = 0;\n"
      "    ended = 1'b0;\n"
      "    stalls = ~$test$plusargs(\"nostall\");\n";
  // Until everything in front of a closed output is full, at the start and now and then: stalls of
  // a few clock cycles never reach what is slower than they are.
  const int64_t pause = std::min<int64_t>(4 * design.interval + 16, 20000);
  text += fmt::format("    rest = stalls ? {} : 0;\n", pause);
  text += fmt::format(
      "    if ($value$plusargs(\"dump=%s\", dump)) begin\n"
      "      $dumpfile(dump);\n      $dumpvars(0, {}_tb);\n    end\n",
      top);
  text += fmt::format(
      "    file = $fopen(\"vectors.hex\", \"r\");\n"
      "    if (file == 0) begin\n"
      "      $display(\"FAIL: vectors.hex cannot be opened\");\n      $finish;\n    end\n"
      "    got = $fscanf(file, \"%h %h\", row_in, row_out);\n"
      "    if (got == 2) wanted[0] = row_out;\n"
      "    ended = got != 2;\n"
      "    #1; clk = 1'b1; #1; clk = 1'b0; #1; clk = 1'b1; #1; clk = 1'b0; #1;\n"
      "    rst = 1'b0;\n"
      "    while (!(ended && rows == sent) && idle < 100000) begin\n"
      "      noise = {{noise[30:0], noise[31] ^ noise[21] ^ noise[1] ^ noise[0]}};\n"
      "      // What was offered and not taken stays.\n"
      "      if (!in_valid && !ended) in_valid = !stalls || noise[0] || noise[7];\n"
      "      in_data = row_in[beat_in * {0} +: {0}];\n"
      "      if (rest > 0) rest = rest - 1;\n"
      "      else if (stalls && noise[{4}:8] == 0) rest = {5};\n"
      "      out_ready = rest == 0 && (!stalls || noise[3] || noise[12]);\n"
      "      #1;\n"
      "      taken = in_valid && in_ready;\n"
      "      given = out_valid && out_ready;\n"
      "      if (holding && (out_valid !== 1'b1 || out_data !== held)) broken = broken + 1;\n"
      "      holding = out_valid === 1'b1 && !out_ready;\n"
      "      held = out_data;\n"
      "      if (given) begin\n"
      "        if (out_data !== wanted[rows % 1024][beat_out * {1} +: {1}]) begin\n"
      "          if (mismatches < 10)\n"
      "            $display(\"row %0d, beat %0d: %h, not %h\", rows, beat_out, out_data,\n"
      "                     wanted[rows % 1024][beat_out * {1} +: {1}]);\n"
      "          mismatches = mismatches + 1;\n        end\n"
      "        beat_out = beat_out + 1;\n"
      "        if (beat_out == {3}) begin\n          beat_out = 0;\n          rows = rows + 1;\n"
      "        end\n      end\n"
      "      clk = 1'b1;\n      #1;\n"
      "      if (taken) begin\n        in_valid = 1'b0;\n        beat_in = beat_in + 1;\n"
      "        if (beat_in == {2}) begin\n          beat_in = 0;\n          sent = sent + 1;\n"
      "          got = $fscanf(file, \"%h %h\", row_in, row_out);\n"
      "          if (got == 2) wanted[sent % 1024] = row_out;\n"
      "          ended = got != 2;\n        end\n      end\n"
      "      idle = taken || given ? 0 : idle + 1;\n"
      "      cycles = cycles + 1;\n"
      "      clk = 1'b0;\n      #1;\n    end\n"
      "    $fclose(file);\n"
      "    if (idle >= 100000) $display(\"stuck after %0d rows\", rows);\n"
      "    if (broken > 0) $display(\"%0d valid results changed before they were taken\", "
      "broken);\n"
      "    $display(\"%0d clock cycles\", cycles);\n"
      "    if (rows == 0) $display(\"FAIL: no rows\");\n"
      "    else if (mismatches + broken == 0 && idle < 100000)\n"
      "      $display(\"PASS: %0d rows, 0 mismatches\", rows);\n"
      "    else $display(\"FAIL: %0d rows, %0d mismatches\", rows, mismatches + broken +\n"
      "                  (idle >= 100000 ? 1 : 0));\n"
      "    $finish;\n  end\nendmodule\n",
      in_bits, out_bits, in_beats, out_beats, 8 + std::bit_width(static_cast<uint64_t>(pause)),
      pause);
  return text;
}

}  // namespace mase
