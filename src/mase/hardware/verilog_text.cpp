// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verilog_text.h"

#include <algorithm>
#include <array>
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

std::string sign_bit(const VerilogOperand& operand) {
  if (!operand.range.is_signed()) return "1'b0";
  const int width = operand.range.width();
  return width == 1 ? operand.signal : fmt::format("{}[{}]", operand.signal, width - 1);
}

std::string verilog_name(std::string_view name) {
  static constexpr std::array keywords = {
      "always",    "and",      "assign",   "begin",    "bit",         "buf",       "byte",
      "case",      "cell",     "class",    "clk",      "config",      "const",     "default",
      "do",        "edge",     "else",     "end",      "endcase",     "endmodule", "enum",
      "event",     "final",    "for",      "force",    "fork",        "function",  "generate",
      "if",        "import",   "initial",  "inout",    "input",       "int",       "interface",
      "join",      "large",    "local",    "logic",    "macromodule", "matches",   "medium",
      "modport",   "module",   "nand",     "negedge",  "new",         "nor",       "not",
      "null",      "or",       "output",   "package",  "packed",      "parameter", "posedge",
      "primitive", "priority", "program",  "property", "pure",        "rand",      "ref",
      "reg",       "release",  "repeat",   "return",   "rst",         "sequence",  "signed",
      "small",     "static",   "string",   "strong",   "struct",      "super",     "supply0",
      "table",     "task",     "this",     "time",     "tri",         "type",      "typedef",
      "union",     "unique",   "unsigned", "use",      "var",         "vector",    "virtual",
      "void",      "wait",     "wand",     "weak",     "while",       "wire",      "with",
      "within",    "wor",      "xnor",     "xor"};
  std::string text;
  for (const char c : name)
    text += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) text = "n_" + text;
  for (const char* keyword : keywords)
    if (text == keyword) return text + "_";
  return text;
}

}  // namespace mase
