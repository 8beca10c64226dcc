// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/carry/carry_cells.h"

#include <algorithm>

#include "mase/base/text.h"
#include "mase/hardware/carry/carry_plan.h"
#include "mase/hardware/emit/verilog_text.h"

namespace mase {
namespace {

// Pieces of a vector, the highest first; neighbours of one kind are one piece.
std::string concatenated(std::vector<std::string> pieces) {
  std::reverse(pieces.begin(), pieces.end());
  return pieces.size() == 1 ? pieces[0] : fmt::format("{{{}}}", join(pieces, ", "));
}

class ChainText {
 public:
  ChainText(const IntegerContext& context, const std::string& name, const std::string& parts,
            const std::vector<VerilogOperand>& operands)
      : name_(name),
        parts_(parts),
        operands_(operands),
        entering_(carry_operands(context)),
        plan_(carry_plan(context)),
        width_(static_cast<int>(plan_.bits.size())) {}

  std::string write() {
    std::vector<std::string> result;
    if (plan_.first > 0) {
      std::vector<std::string> low;
      for (int i = 0; i < plan_.first; i = piece_end(i, plan_.first)) low.push_back(wire(i));
      result.push_back(concatenated(std::move(low)));
    }
    if (plan_.first < width_) {
      std::vector<std::string> sums, passed;
      int count = 0;
      for (int i = plan_.first; i < width_; i = piece_end(i, width_)) {
        if (plan_.bits[static_cast<size_t>(i)].kind == CarryBit::Kind::compressed)
          compressed(i, count++, sums, passed);
        else
          plain(i, sums, passed);
      }
      const std::string chain = parts_ + "y";
      const int bits = width_ - plan_.first;
      text_ += fmt::format("  wire {}{};\n", sliced_range(bits), chain);
      text_ += fmt::format(
          "  carry_chain #(.WIDTH({})) {}chain (.s({}), .d({}), .first(1'b{:d}), .y({}));\n", bits,
          parts_, concatenated(std::move(sums)), concatenated(std::move(passed)), plan_.carry_first,
          chain);
      result.push_back(chain);
    }
    return text_ + fmt::format("  assign {} = {};\n", name_, concatenated(std::move(result)));
  }

 private:
  // What of the operands stands in a bit, and how: bits alike make one piece.
  int form(int i) const {
    const CarryBit& bit = plan_.bits[static_cast<size_t>(i)];
    int form = static_cast<int>(bit.kind);
    // What is left over runs through a piece.
    if (bit.kind == CarryBit::Kind::compressed) return form;
    form = form * 2 + bit.one;
    for (const CarryOperand& operand : entering_)
      form = form * 4 + (operand.has(i) ? 1 + operand.inverts(i) : 0);
    return form;
  }
  int piece_end(int from, int limit) const {
    int to = from + 1;
    while (to < limit && form(to) == form(from)) ++to;
    return to;
  }

  std::string bits_of(size_t k, int from, int to) const {
    const CarryOperand& operand = entering_[k];
    return extended({operands_[k].signal, operands_[k].range}, operand.shift, from, to);
  }
  std::string ones(int count, bool one) const {
    return one ? fmt::format("{{{}{{1'b1}}}}", count) : literal_bits(0, count);
  }

  std::string wire(int from) const {
    const int to = piece_end(from, plan_.first);
    for (size_t k = 0; k < entering_.size(); ++k)
      if (entering_[k].has(from)) return bits_of(k, from, to);
    return ones(to - from, plan_.bits[static_cast<size_t>(from)].one);
  }

  // s: what the carry is added to; d: the carry where s is zero.
  void plain(int from, std::vector<std::string>& sums, std::vector<std::string>& passed) {
    const int to = piece_end(from, width_), count = to - from;
    const bool one = plan_.bits[static_cast<size_t>(from)].one;
    std::vector<size_t> live;
    for (size_t k = 0; k < entering_.size(); ++k)
      if (entering_[k].has(from)) live.push_back(k);
    if (live.empty()) {
      sums.push_back(ones(count, one));
      passed.push_back(literal_bits(0, count));
      return;
    }
    // The one that is handed on is not turned over.
    if (live.size() == 2 && entering_[live[0]].inverts(from)) std::swap(live[0], live[1]);
    const std::string first = bits_of(live[0], from, to);
    if (live.size() == 2) {
      sums.push_back(fmt::format("{} ^ {}{}", first, entering_[live[1]].inverts(from) ? "~" : "",
                                 bits_of(live[1], from, to)));
      passed.push_back(first);
      return;
    }
    sums.push_back((entering_[live[0]].inverts(from) != one ? "~" : "") + first);
    passed.push_back(ones(count, one));
  }

  void compressed(int from, int number, std::vector<std::string>& sums,
                  std::vector<std::string>& passed) {
    const int to = piece_end(from, width_), count = to - from;
    std::vector<std::vector<std::string>> pieces(most_chain_operands);
    std::vector<std::string> turned(most_chain_operands);
    // The constant's ones take the place of an operand that has no bit there.
    for (int i = from; i < to; ++i) {
      std::vector<size_t> live;
      for (size_t k = 0; k < entering_.size(); ++k)
        if (entering_[k].has(i)) live.push_back(k);
      bool one = plan_.bits[static_cast<size_t>(i)].one;
      for (size_t k = 0; k < most_chain_operands; ++k) {
        const bool has = k < entering_.size() && entering_[k].has(i);
        turned[k] += has && entering_[k].inverts(i) ? '1' : '0';
        pieces[k].push_back(has ? bits_of(k, i, i + 1) : one ? "1'b1" : "1'b0");
        if (!has) one = false;
      }
    }
    const std::string sum = fmt::format("{}s{}", parts_, number),
                      kept = fmt::format("{}k{}", parts_, number);
    text_ += fmt::format("  wire {0}{1}, {2};\n", sliced_range(count), sum, kept);
    std::string parameters = fmt::format(".WIDTH({})", count), ports;
    const char* const letters = "abc";
    for (size_t k = 0; k < most_chain_operands; ++k) {
      std::reverse(turned[k].begin(), turned[k].end());
      if (turned[k].find('1') != std::string::npos)
        parameters += fmt::format(", .TURNED_{}({}'b{})", static_cast<char>(letters[k] - 'a' + 'A'),
                                  count, turned[k]);
      ports += fmt::format(".{}({}), ", letters[k], merged(k, from, to, pieces[k]));
    }
    text_ +=
        fmt::format("  compressor #({}) {}row{} ({}.first(1'b{:d}), .s({}), .k({}));\n", parameters,
                    parts_, number, ports, from == plan_.second && plan_.carry_second, sum, kept);
    sums.push_back(sum);
    passed.push_back(kept);
  }

  // Single bits of one operand that lie side by side are one slice.
  std::string merged(size_t k, int from, int to, const std::vector<std::string>& bits) const {
    std::vector<std::string> pieces;
    for (int i = from; i < to;) {
      int end = i + 1;
      if (k < entering_.size() && entering_[k].has(i)) {
        while (end < to && entering_[k].has(end)) ++end;
        pieces.push_back(bits_of(k, i, end));
      } else {
        pieces.push_back(bits[static_cast<size_t>(i - from)]);
      }
      i = end;
    }
    return concatenated(std::move(pieces));
  }

  const std::string& name_;
  const std::string& parts_;
  const std::vector<VerilogOperand>& operands_;
  std::vector<CarryOperand> entering_;
  CarryPlan plan_;
  int width_;
  std::string text_;
};

}  // namespace

std::string carry_cells_text(const IntegerContext& context, const std::string& name,
                             const std::string& parts,
                             const std::vector<VerilogOperand>& operands) {
  return ChainText(context, name, parts, operands).write();
}

std::map<std::string, std::string> plain_carry_modules() {
  return {
      {"compressor",
       "// Three numbers as two: a + b + c + first = s ^ k and k, without cells of any family.\n"
       "`default_nettype none\n\n"
       "/* verilator lint_off UNUSEDSIGNAL */\n"
       "module compressor #(\n"
       "    parameter WIDTH = 1,\n"
       "    parameter [WIDTH-1:0] TURNED_A = 0, TURNED_B = 0, TURNED_C = 0\n"
       ") (\n"
       "    input  wire [WIDTH-1:0] a, b, c,\n"
       "    input  wire first,\n"
       "    output wire [WIDTH-1:0] s, k\n"
       ");\n"
       "  wire [WIDTH-1:0] x = a ^ TURNED_A, y = b ^ TURNED_B, z = c ^ TURNED_C;\n"
       "  wire [WIDTH:0] left = {(x & y) | (x & z) | (y & z), first};\n"
       "  assign k = left[WIDTH-1:0];\n"
       "  assign s = x ^ y ^ z ^ k;\n"
       "endmodule\n\n"
       "`default_nettype wire\n"},
      {"carry_chain",
       "// y = s ^ carry, where a zero of s takes its carry on from d: the sum of d and s ^ d.\n"
       "`default_nettype none\n\n"
       "/* verilator lint_off UNUSEDSIGNAL */\n"
       "module carry_chain #(\n"
       "    parameter WIDTH = 1\n"
       ") (\n"
       "    input  wire [WIDTH-1:0] s, d,\n"
       "    input  wire first,\n"
       "    output wire [WIDTH-1:0] y\n"
       ");\n"
       "  wire [WIDTH:0] sum = {d, first} + {s ^ d, first};\n"
       "  assign y = sum[WIDTH:1];\n"
       "endmodule\n\n"
       "`default_nettype wire\n"}};
}

std::map<std::string, std::string> carry_modules() {
  return {
      {"compressor",
       "// Three numbers as two: a + b + c + first = s ^ k and k, what three bits leave over for "
       "the "
       "next\n"
       "// bit, both from one table with two outputs. Operands are turned over where TURNED says "
       "so.\n"
       "`default_nettype none\n\n"
       "/* verilator lint_off UNOPTFLAT */\n"
       "/* verilator lint_off UNUSEDSIGNAL */\n"
       "module compressor #(\n"
       "    parameter WIDTH = 1,\n"
       "    parameter [WIDTH-1:0] TURNED_A = 0, TURNED_B = 0, TURNED_C = 0\n"
       ") (\n"
       "    input  wire [WIDTH-1:0] a, b, c,\n"
       "    input  wire first,\n"
       "    output wire [WIDTH-1:0] s, k\n"
       ");\n"
       "  // The majority of three bits, for each way to turn them over.\n"
       "  localparam [63:0] MAJORITY = 64'h172b4d8e71b2d4e8;\n"
       "  wire [WIDTH:0] left;\n"
       "  assign left[0] = first;\n"
       "  assign k = left[WIDTH-1:0];\n"
       "  genvar i;\n"
       "  generate\n"
       "    for (i = 0; i < WIDTH; i = i + 1) begin : bits\n"
       "      localparam [2:0] TURNED = {TURNED_C[i], TURNED_B[i], TURNED_A[i]};\n"
       "      localparam [7:0] KEPT = MAJORITY[8*TURNED +: 8];\n"
       "      localparam [15:0] SUM = ^TURNED ? 16'h9669 : 16'h6996;\n"
       "      LUT6_2 #(.INIT({SUM, SUM, KEPT, KEPT, KEPT, KEPT})) pair (\n"
       "          .I0(a[i]), .I1(b[i]), .I2(c[i]), .I3(left[i]), .I4(1'b0), .I5(1'b1),\n"
       "          .O5(left[i+1]), .O6(s[i]));\n"
       "    end\n"
       "  endgenerate\n"
       "endmodule\n\n"
       "`default_nettype wire\n"},
      {"carry_chain",
       "// A carry chain: y = s ^ carry, where a zero of s takes its carry on from d.\n"
       "`default_nettype none\n\n"
       "/* verilator lint_off UNOPTFLAT */\n"
       "/* verilator lint_off UNUSEDSIGNAL */\n"
       "module carry_chain #(\n"
       "    parameter WIDTH = 1\n"
       ") (\n"
       "    input  wire [WIDTH-1:0] s, d,\n"
       "    input  wire first,\n"
       "    output wire [WIDTH-1:0] y\n"
       ");\n"
       "  localparam BLOCKS = (WIDTH + 3) / 4;\n"
       "  wire [4*BLOCKS:0] all_s = {{(4*BLOCKS+1-WIDTH){1'b0}}, s};\n"
       "  wire [4*BLOCKS:0] all_d = {{(4*BLOCKS+1-WIDTH){1'b0}}, d};\n"
       "  wire [4*BLOCKS-1:0] all_y, carry;\n"
       "  assign y = all_y[WIDTH-1:0];\n"
       "  genvar i;\n"
       "  generate\n"
       "    for (i = 0; i < BLOCKS; i = i + 1) begin : blocks\n"
       "      if (i == 0)\n"
       "        CARRY4 block (.CI(1'b0), .CYINIT(first), .DI(all_d[3:0]), .S(all_s[3:0]),\n"
       "                      .O(all_y[3:0]), .CO(carry[3:0]));\n"
       "      else\n"
       "        CARRY4 block (.CI(carry[4*i-1]), .CYINIT(1'b0), .DI(all_d[4*i +: 4]),\n"
       "                      .S(all_s[4*i +: 4]), .O(all_y[4*i +: 4]), .CO(carry[4*i +: 4]));\n"
       "    end\n"
       "  endgenerate\n"
       "endmodule\n\n"
       "`default_nettype wire\n"}};
}

std::string carry_cell_models() {
  return "// What LUT6_2 and CARRY4 do, for simulators and for reading back: synthesis has its "
         "own.\n"
         "`default_nettype none\n\n"
         "/* verilator lint_off UNOPTFLAT */\n"
         "/* verilator lint_off DECLFILENAME */\n"
         "module LUT6_2 #(\n"
         "    parameter [63:0] INIT = 64'h0\n"
         ") (\n"
         "    input  wire I0, I1, I2, I3, I4, I5,\n"
         "    output wire O5, O6\n"
         ");\n"
         "  assign O5 = INIT[{1'b0, I4, I3, I2, I1, I0}];\n"
         "  assign O6 = INIT[{I5, I4, I3, I2, I1, I0}];\n"
         "endmodule\n\n"
         "module CARRY4 (\n"
         "    input  wire CI, CYINIT,\n"
         "    input  wire [3:0] DI, S,\n"
         "    output wire [3:0] O, CO\n"
         ");\n"
         "  assign CO[0] = S[0] ? CI | CYINIT : DI[0];\n"
         "  assign CO[1] = S[1] ? CO[0] : DI[1];\n"
         "  assign CO[2] = S[2] ? CO[1] : DI[2];\n"
         "  assign CO[3] = S[3] ? CO[2] : DI[3];\n"
         "  assign O = S ^ {CO[2:0], CI | CYINIT};\n"
         "endmodule\n\n"
         "`default_nettype wire\n";
}

}  // namespace mase
