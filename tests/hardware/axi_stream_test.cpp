// SPDX-License-Identifier: Apache-2.0
// A stream behind AXI4-Stream ports gives the network's numbers under random stalls of both sides,
// tlast with the last beat of each row and no other, and says where the other side's is not.
#include <gtest/gtest.h>

#include "hardware/plane_networks.h"
#include "mase/base/file.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/hardware/tools/tool.h"
#include "support/support.h"

namespace mase::test::axi_stream_test {
namespace {

// Reads the rows of vectors.hex; `late` puts the other side's tlast one beat later.
std::string bench(int in_bits, int in_beats, int out_bits, int out_beats, int in_row, int out_row) {
  return fmt::format(
      "`timescale 1ns / 1ps\nmodule bench;\n"
      "  logic aclk = 0, aresetn = 0, tvalid = 0, tready = 0, late;\n"
      "  wire sready, mvalid, mlast, error;\n"
      "  logic [{0}:0] sdata = 0;\n  wire [{1}:0] mdata;\n"
      "  logic [{4}:0] row_in;\n  logic [{5}:0] row_out, wanted [0:63];\n"
      "  integer file, sent = 0, got = 0, in_beat = 0, out_beat = 0, wrong = 0, rows, k, cycles;\n"
      "  logic [31:0] noise = 32'h1234567;\n  logic [{4}:0] all [0:63];\n  logic taken, given;\n"
      "  top_axis dut (.aclk(aclk), .aresetn(aresetn), .s_axis_tdata(sdata),\n"
      "    .s_axis_tvalid(tvalid), .s_axis_tready(sready),\n"
      "    .s_axis_tlast(in_beat == (late ? 0 : {2} - 1)), .m_axis_tdata(mdata),\n"
      "    .m_axis_tvalid(mvalid), .m_axis_tready(tready), .m_axis_tlast(mlast),\n"
      "    .frame_error(error));\n"
      "  initial begin\n    late = $test$plusargs(\"late\");\n"
      "    file = $fopen(\"vectors.hex\", \"r\");\n    rows = 0;\n"
      "    while ($fscanf(file, \"%h %h\", row_in, row_out) == 2) begin\n"
      "      all[rows] = row_in; wanted[rows] = row_out; rows = rows + 1;\n    end\n"
      "    #1 aclk = 1; #1 aclk = 0; #1 aclk = 1; #1 aclk = 0; aresetn = 1;\n"
      "    for (cycles = 0; cycles < 200000 && got < rows; cycles = cycles + 1) begin\n"
      "      noise = {{noise[30:0], noise[31] ^ noise[21] ^ noise[1] ^ noise[0]}};\n"
      "      if (!tvalid) tvalid = sent < rows && noise[2];\n"
      "      sdata = tvalid ? all[sent][in_beat * {6} +: {6}] : 0;\n"
      "      tready = noise[5] | noise[9];\n      #1;\n"
      "      taken = tvalid && sready; given = mvalid && tready;\n"
      "      if (given) begin\n"
      "        if (mdata[{7}-1:0] !== wanted[got][out_beat * {7} +: {7}]) wrong = wrong + 1;\n"
      "        if (mlast !== (out_beat == {3} - 1)) wrong = wrong + 1;\n"
      "        out_beat = out_beat + 1;\n"
      "        if (out_beat == {3}) begin out_beat = 0; got = got + 1; end\n      end\n"
      "      aclk = 1; #1;\n"
      "      if (taken) begin\n        tvalid = 0;\n        in_beat = in_beat + 1;\n"
      "        if (in_beat == {2}) begin in_beat = 0; sent = sent + 1; end\n      end\n"
      "      aclk = 0; #1;\n    end\n"
      "    $display(\"rows %0d wrong %0d error %b\", got, wrong, error);\n    $finish;\n  end\n"
      "endmodule\n",
      (in_bits + 7) / 8 * 8 - 1, (out_bits + 7) / 8 * 8 - 1, in_beats, out_beats, in_row - 1,
      out_row - 1, in_bits, out_bits);
}

TEST(axi_stream, rows_come_through_and_frames_are_watched) {
  if (!tool_exists("iverilog")) GTEST_SKIP() << "iverilog is not installed";
  for (const size_t index : {size_t{1}, size_t{5}}) {  // one with a head, one that ends in a plane
    const IntegerGraph lowered = lower(plane_networks()[index].second).graph;
    const Design design = make_design(lowered, {.style = "stream"});
    const std::string folder = temporary_folder() + "/design";
    const DesignRows rows = random_rows(lowered, 8, 3);
    write_design(folder, design_files(design, rows_of(design.graph, rows.inputs, "drawn"), {}));
    const Value layers = read_json(folder + "/manifest.json")["layers"];
    const EmittedDesign& e = design.emitted;
    const auto parallel = [&](const Value& layer, const char* key) {
      return static_cast<int>(layer[key].as_int());
    };
    const int in = parallel(layers.as_list().front(), "parallelism_in"),
              out = parallel(layers.as_list().back(), "parallelism_out");
    write(folder + "/sim/bench.sv",
          bench(in * e.input_element, e.input_bits / e.input_element / in, out * e.output_element,
                e.output_bits / e.output_element / out, e.input_bits, e.output_bits));
    const ToolResult built =
        run_tool({"sh", "-c", "iverilog -g2012 -s bench -o bench bench.sv ../rtl/*.sv ../axi/*.sv"},
                 folder + "/sim");
    ASSERT_EQ(built.exit_code, 0) << built.output;
    EXPECT_NE(run_tool({"vvp", "bench"}, folder + "/sim").output.find("rows 8 wrong 0 error 0"),
              std::string::npos);
    EXPECT_NE(
        run_tool({"vvp", "bench", "+late"}, folder + "/sim").output.find("rows 8 wrong 0 error 1"),
        std::string::npos);
    if (tool_exists("verilator")) {
      const ToolResult lint = run_tool(
          {"sh", "-c", "verilator --lint-only -Wall --top-module top_axis axi/*.sv rtl/*.sv"},
          folder);
      EXPECT_EQ(lint.exit_code, 0) << lint.output;
    }
  }
}

}  // namespace
}  // namespace mase::test::axi_stream_test
