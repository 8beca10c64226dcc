// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/emit/verilog_text.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace mase {

std::string literal_bits(int64_t value, int width) {
  width = std::max(width, 1);
  const uint64_t mask = width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  return fmt::format("{}'d{}", width, static_cast<uint64_t>(value) & mask);
}

std::string literal(int64_t value, const IntegerRange& range) {
  return literal_bits(value, range.width());
}

std::string extended(const VerilogOperand& operand, int low, int from, int to) {
  MASE_CHECK(from < to, "no bits");
  const int width = operand.range.width();
  std::vector<std::string> parts;
  const int top = low + width;
  if (width == 0) return literal_bits(0, to - from);
  if (to > top) {
    const int count = to - std::max(from, top);
    if (!operand.range.is_signed())
      parts.push_back(literal_bits(0, count));
    else
      parts.push_back(count == 1 ? sign_bit(operand)
                                 : fmt::format("{{{}{{{}}}}}", count, sign_bit(operand)));
  }
  const int first = std::max(from, low) - low, last = std::min(to, top) - low - 1;
  if (first <= last) {
    if (width == 1 || (first == 0 && last == width - 1))
      parts.push_back(operand.signal);
    else
      parts.push_back(first == last ? fmt::format("{}[{}]", operand.signal, first)
                                    : fmt::format("{}[{}:{}]", operand.signal, last, first));
  }
  if (from < low) parts.push_back(literal_bits(0, std::min(to, low) - from));
  return parts.size() == 1 ? parts[0] : fmt::format("{{{}}}", join(parts, ", "));
}

std::string vector_range(int width) { return width <= 1 ? "" : fmt::format("[{}:0] ", width - 1); }

std::string sliced_range(int width) { return fmt::format("[{}:0] ", std::max(width, 1) - 1); }

std::string sign_bit(const VerilogOperand& operand) {
  if (!operand.range.is_signed()) return "1'b0";
  const int width = operand.range.width();
  return width == 1 ? operand.signal : fmt::format("{}[{}]", operand.signal, width - 1);
}

std::string verilog_name(std::string_view name) {
  // IEEE 1800-2017, and what the emitted modules call their clock and reset.
  static constexpr std::string_view keywords =
      " accept_on alias always always_comb always_ff always_latch and assert assign assume"
      " automatic before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex"
      " casez cell chandle checker class clk clocking cmos config const constraint context"
      " continue cover covergroup coverpoint cross deassign default defparam design disable"
      " dist do edge else end endcase endchecker endclass endclocking endconfig endfunction"
      " endgenerate endgroup endinterface endmodule endpackage endprimitive endprogram"
      " endproperty endsequence endspecify endtable endtask enum event eventually expect"
      " export extends extern final first_match for force foreach forever fork forkjoin"
      " function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins"
      " implements implies import incdir include initial inout input inside instance int"
      " integer interconnect interface intersect join join_any join_none large let liblist"
      " library local localparam logic longint macromodule matches medium modport module nand"
      " negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output"
      " package packed parameter pmos posedge primitive priority program property protected"
      " pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc"
      " randcase randsequence rcmos real realtime ref reg reject_on release repeat restrict"
      " return rnmos rpmos rst rtran rtranif0 rtranif1 s_always s_eventually s_nexttime"
      " s_until s_until_with scalared sequence shortint shortreal showcancelled signed small"
      " soft solve specify specparam static string strong strong0 strong1 struct super supply0"
      " supply1 sync_accept_on sync_reject_on table tagged task this throughout time"
      " timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type"
      " typedef union unique unique0 unsigned until until_with untyped use uwire var vectored"
      " virtual void wait wait_order wand weak weak0 weak1 while wildcard wire with within wor"
      " xnor xor ";
  std::string text;
  for (const char c : name)
    text += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) text = "n_" + text;
  if (keywords.find(" " + text + " ") != std::string_view::npos) text += "_";
  return text;
}

}  // namespace mase
