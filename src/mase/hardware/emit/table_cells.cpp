// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/emit/table_cells.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {
namespace {

constexpr size_t leaf_bits = 6;

// A function without the inputs it does not depend on.
void reduce(std::vector<size_t>& support, std::vector<bool>& table) {
  for (size_t k = support.size(); k-- > 0;) {
    const size_t step = size_t{1} << k;
    bool depends = false;
    for (size_t i = 0; i < table.size() && !depends; ++i)
      depends = (i & step) == 0 && table[i] != table[i | step];
    if (depends) continue;
    std::vector<bool> smaller;
    for (size_t i = 0; i < table.size(); ++i)
      if ((i & step) == 0) smaller.push_back(table[i]);
    table = std::move(smaller);
    support.erase(support.begin() + static_cast<std::ptrdiff_t>(k));
  }
}

std::string digits_of(const std::vector<bool>& table) {
  std::string digits;
  for (size_t first = 0; first < table.size(); first += 4) {
    size_t nibble = 0;
    for (size_t k = first; k < std::min(table.size(), first + 4); ++k)
      nibble |= static_cast<size_t>(table[k]) << (k - first);
    digits += "0123456789abcdef"[nibble];
  }
  std::reverse(digits.begin(), digits.end());
  return fmt::format("{}'h{}", table.size(), digits);
}

std::string module_text(const std::string& head, const std::string& body) {
  return "`default_nettype none\n\n" + head + body + "endmodule\n\n`default_nettype wire\n";
}

constexpr const char* leaf_head =
    "module table6 #(\n    parameter [63:0] TABLE = 64'h0\n) (\n"
    "    input  wire [5:0] x,\n    output wire y\n);\n";
std::string pair_head(const char* name) {
  return fmt::format("module {} (\n    input  wire low, high, s,\n    output wire y\n);\n", name);
}

}  // namespace

std::string TableCells::take_text() { return std::exchange(text_, ""); }

std::string TableCells::value_of(const std::vector<bool>& function) {
  std::vector<size_t> support(bits_.size());
  for (size_t k = 0; k < support.size(); ++k) support[k] = k;
  std::vector<bool> table = function;
  reduce(support, table);
  return wire_of(support, table);
}

std::string TableCells::written(const std::string& key, const std::string& before,
                                const std::string& behind) {
  const auto [entry, fresh] = known_.try_emplace(key, "");
  if (!fresh) return entry->second;
  entry->second = fmt::format("{}{}", parts_, known_.size() - 1);
  text_ += fmt::format("  wire {0};\n", entry->second) + replace_all(before, "@", entry->second) +
           replace_all(behind, "@", entry->second);
  return entry->second;
}

std::string TableCells::leaf(const std::vector<size_t>& support, const std::vector<bool>& table) {
  std::vector<std::string> index;
  for (size_t k = support.size(); k-- > 0;) index.push_back(bits_[support[k]]);
  // Unused inputs of a table are low.
  std::vector<bool> whole = table;
  for (size_t k = support.size(); k < leaf_bits; ++k) {
    index.insert(index.begin(), "1'b0");
    const std::vector<bool> half = whole;
    whole.insert(whole.end(), half.begin(), half.end());
  }
  const std::string cell = fmt::format("table6 #(.TABLE({})) @_cell (.x({{{}}}), .y(@));",
                                       digits_of(whole), join(index, ", "));
  return written(cell, "", "  " + cell + "\n");
}

std::string TableCells::wire_of(const std::vector<size_t>& support,
                                const std::vector<bool>& table) {
  if (support.empty()) return table[0] ? "1'b1" : "1'b0";
  if (support.size() == 1) return (table[0] ? "~" : "") + bits_[support[0]];
  if (support.size() < leaf_bits) {
    std::vector<std::string> index;
    for (size_t k = support.size(); k-- > 0;) index.push_back(bits_[support[k]]);
    const std::string place = fmt::format("[{{{}}}]", join(index, ", "));
    return written(
        digits_of(table) + place,
        fmt::format("  localparam [{}:0] @_t = {};\n", table.size() - 1, digits_of(table)),
        fmt::format("  assign @ = @_t{};\n", place));
  }
  if (support.size() == leaf_bits) return leaf(support, table);
  const std::string choice = bits_[support.back()];
  const auto middle = table.begin() + static_cast<std::ptrdiff_t>(table.size() / 2);
  struct Half {
    std::vector<size_t> support;
    std::vector<bool> table;
  };
  Half low{{support.begin(), support.end() - 1}, {table.begin(), middle}},
      high{{support.begin(), support.end() - 1}, {middle, table.end()}};
  reduce(low.support, low.table);
  reduce(high.support, high.table);
  // The multiplexers stand behind tables, and behind one another.
  const auto both = [&](size_t least, size_t most) {
    return std::min(low.support.size(), high.support.size()) >= least &&
           std::max(low.support.size(), high.support.size()) <= most;
  };
  const char* const pair = both(2, leaf_bits)                   ? "pair7"
                           : both(leaf_bits + 1, leaf_bits + 1) ? "pair8"
                                                                : nullptr;
  const bool leaves = both(2, leaf_bits);
  const std::string if_low =
                        leaves ? leaf(low.support, low.table) : wire_of(low.support, low.table),
                    if_high =
                        leaves ? leaf(high.support, high.table) : wire_of(high.support, high.table);
  if (!pair) {
    const std::string text = fmt::format("{} ? {} : {}", choice, if_high, if_low);
    return written(text, "", fmt::format("  assign @ = {};\n", text));
  }
  const std::string cell =
      fmt::format("{} @_cell (.low({}), .high({}), .s({}), .y(@));", pair, if_low, if_high, choice);
  return written(cell, "", "  " + cell + "\n");
}

std::map<std::string, std::string> table_modules() {
  return {
      {"table6", "// A table of six inputs.\n" +
                     module_text(leaf_head,
                                 "  LUT6 #(.INIT(TABLE)) cell (.I0(x[0]), .I1(x[1]), .I2(x[2]), "
                                 ".I3(x[3]), .I4(x[4]),\n"
                                 "                             .I5(x[5]), .O(y));\n")},
      {"pair7",
       "// One of two tables.\n" +
           module_text(pair_head("pair7"), "  MUXF7 cell (.I0(low), .I1(high), .S(s), .O(y));\n")},
      {"pair8",
       "// One of two pairs.\n" +
           module_text(pair_head("pair8"), "  MUXF8 cell (.I0(low), .I1(high), .S(s), .O(y));\n")}};
}

std::map<std::string, std::string> plain_table_modules() {
  return {{"table6", "// A table of six inputs, without cells of any family.\n" +
                         module_text(leaf_head, "  assign y = TABLE[x];\n")},
          {"pair7", "// One of two tables.\n" +
                        module_text(pair_head("pair7"), "  assign y = s ? high : low;\n")},
          {"pair8", "// One of two pairs.\n" +
                        module_text(pair_head("pair8"), "  assign y = s ? high : low;\n")}};
}

std::string table_cell_models() {
  return "module LUT6 #(\n    parameter [63:0] INIT = 64'h0\n) (\n"
         "    input  wire I0, I1, I2, I3, I4, I5,\n    output wire O\n);\n"
         "  assign O = INIT[{I5, I4, I3, I2, I1, I0}];\nendmodule\n\n"
         "module MUXF7 (\n    input  wire I0, I1, S,\n    output wire O\n);\n"
         "  assign O = S ? I1 : I0;\nendmodule\n\n"
         "module MUXF8 (\n    input  wire I0, I1, S,\n    output wire O\n);\n"
         "  assign O = S ? I1 : I0;\nendmodule\n\n";
}

}  // namespace mase
