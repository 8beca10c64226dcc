// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/emit/axi_stream.h"

#include <algorithm>
#include <bit>

#include "mase/base/error.h"

namespace mase {
namespace {

int whole_bytes(int bits) { return (bits + 7) / 8 * 8; }

// A counter of a row's beats, and whether this one is the last.
std::string beat_counter(const std::string& side, int64_t beats) {
  if (beats == 1) return fmt::format("  wire {}_last = 1'b1;\n", side);
  const int bits = std::bit_width(static_cast<uint64_t>(beats - 1));
  return fmt::format(
      "  logic [{1}:0] {0}_beat;\n  wire {0}_last = {0}_beat == {2}'d{3};\n"
      "  always_ff @(posedge aclk)\n    if (~aresetn) {0}_beat <= {2}'d0;\n"
      "    else if ({0}_axis_tvalid & {0}_axis_tready)\n"
      "      {0}_beat <= {0}_last ? {2}'d0 : {0}_beat + {2}'d1;\n",
      side, bits - 1, bits, beats - 1);
}

}  // namespace

std::string axi_stream_text(const std::string& top, const AxiBeats& in, const AxiBeats& out) {
  const int wide_in = whole_bytes(in.bits), wide_out = whole_bytes(out.bits);
  std::string result = "data_out";
  if (wide_out > out.bits)
    result = fmt::format("{{{{{}{{{}}}}}, data_out}}", wide_out - out.bits,
                         out.is_signed ? fmt::format("data_out[{}]", out.bits - 1) : "1'b0");
  return fmt::format(
             "// {0} with AXI4-Stream ports: {1} beats of {2} bits make a row, {3} beats of {4} "
             "bits\n"
             "// its result. Bits above those of a beat are not read. frame_error stays from a "
             "tlast\n"
             "// that is not with the last beat of a row, or a last beat without it, until reset.\n"
             "/* verilator lint_off UNUSEDSIGNAL */\n`default_nettype none\n\nmodule {0}_axis (\n"
             "    input  logic aclk,\n    input  logic aresetn,\n"
             "    input  logic [{5}:0] s_axis_tdata,\n    input  logic s_axis_tvalid,\n"
             "    output logic s_axis_tready,\n    input  logic s_axis_tlast,\n"
             "    output logic [{6}:0] m_axis_tdata,\n    output logic m_axis_tvalid,\n"
             "    input  logic m_axis_tready,\n    output logic m_axis_tlast,\n"
             "    output logic frame_error\n);\n",
             top, in.beats, in.bits, out.beats, out.bits, wide_in - 1, wide_out - 1) +
         beat_counter("s", in.beats) + beat_counter("m", out.beats) +
         fmt::format(
             "  always_ff @(posedge aclk)\n    if (~aresetn) frame_error <= 1'b0;\n"
             "    else if (s_axis_tvalid & s_axis_tready & (s_axis_tlast != s_last))\n"
             "      frame_error <= 1'b1;\n"
             "  wire [{1}:0] data_out;\n"
             "  assign m_axis_tdata = {3};\n  assign m_axis_tlast = m_last;\n"
             "  {0} {0}_inst (\n"
             "      .clk(aclk), .rst(~aresetn), .data_in_0(s_axis_tdata[{2}:0]),\n"
             "      .data_in_0_valid(s_axis_tvalid), .data_in_0_ready(s_axis_tready),\n"
             "      .data_out_0(data_out), .data_out_0_valid(m_axis_tvalid),\n"
             "      .data_out_0_ready(m_axis_tready));\n"
             "endmodule\n\n`default_nettype wire\n",
             top, out.bits - 1, in.bits - 1, result);
}

}  // namespace mase
