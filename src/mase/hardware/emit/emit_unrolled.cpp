// SPDX-License-Identifier: Apache-2.0
// The unrolled style: every node of the graph is a signal, a new input every clock cycle. With
// registers in the graph (pipeline.cpp) there are a clock and, on request, a valid bit that travels
// along; without, the module is combinational.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/emit/table_cells.h"
#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase::emit_unrolled_style {
namespace {

constexpr size_t most_vector_entries = 64;  // one look-up table for each bit
constexpr size_t choices_for_a_cell = 6;    // a drawn function of six bits is some 25 choices

size_t occurrences(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// Functions of some bits as choices by the highest bit that matters: a decision diagram, every
// different function one wire.
class TableChoices {
 public:
  TableChoices(std::vector<std::string> bits, std::string prefix)
      : bits_(std::move(bits)), prefix_(std::move(prefix)) {}

  std::string value_of(const std::vector<bool>& function) {
    if (std::equal(function.begin() + 1, function.end(), function.begin()))
      return function[0] ? "1'b1" : "1'b0";
    const auto middle = function.begin() + static_cast<std::ptrdiff_t>(function.size() / 2);
    const std::vector<bool> low(function.begin(), middle), high(middle, function.end());
    if (low == high) return value_of(low);
    const std::string& bit = bits_[static_cast<size_t>(std::countr_zero(low.size()))];
    if (low.size() == 1) return high[0] ? bit : "~" + bit;
    if (const auto known = known_.find(function); known != known_.end()) return known->second;
    const std::string if_low = value_of(low), if_high = value_of(high);
    const std::string name = fmt::format("{}{}", prefix_, known_.size());
    text_ += fmt::format("  wire {} = {} ? {} : {};\n", name, bit, if_high, if_low);
    return known_[function] = name;
  }
  // What was written since.
  std::string take_text() { return std::exchange(text_, ""); }

 private:
  std::vector<std::string> bits_;
  std::string prefix_, text_;
  std::map<std::vector<bool>, std::string> known_;
};

class Writer {
 public:
  Writer(const IntegerGraph& graph, const EmitOptions& options) : graph_(graph), options_(options) {
    name_signals();
  }

  EmittedDesign write() {
    EmittedDesign design;
    design.latency = latency();
    design.clocked = design.latency > 0;
    design.valid = options_.values["valid"].as_bool();
    if (design.valid && !design.clocked)
      throw depends_on_inputs()
          ? Error("--valid", "a valid bit needs registers", "give --levels too")
          : Error("--valid", "no output depends on an input: there is nothing to wait for",
                  "leave it out");
    for (const IntegerId id : graph_.inputs) design.input_bits += port_width(id);
    for (const IntegerId id : graph_.outputs) design.output_bits += port_width(id);
    design.signals = names_;
    design.files[fmt::format("rtl/{}.sv", options_.top)] = module_text(design);
    for (const IntegerNode& node : graph_.nodes)
      if (node.op->cells) design.cells = true;
    design.cells = design.cells || has_table_cells_;
    return design;
  }

 private:
  int port_width(IntegerId id) const { return std::max(1, graph_.at(id).range.width()); }

  // Registers between an input and an output: the same on every path. What depends on no input has
  // any number of them; it is there when they are filled.
  bool depends_on_inputs() const {
    std::vector<char> varies(graph_.nodes.size(), 0);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      varies[i] = !graph_.nodes[i].op->evaluate;
      for (const IntegerId id : graph_.nodes[i].inputs)
        varies[i] = varies[i] || varies[static_cast<size_t>(id)];
    }
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                       [&](IntegerId id) { return varies[static_cast<size_t>(id)] != 0; });
  }

  int latency() const {
    std::vector<int> stage(graph_.nodes.size(), 0);
    std::vector<char> varies(graph_.nodes.size(), 0);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const IntegerNode& node = graph_.nodes[i];
      varies[i] = !node.op->evaluate;
      for (const IntegerId id : node.inputs) {
        const size_t input = static_cast<size_t>(id);
        MASE_CHECK(!varies[input] || !varies[i] || stage[input] == stage[i],
                   "{} reads values of the clock cycles {} and {}", names_[i], stage[i],
                   stage[input]);
        if (varies[input] == varies[i]) stage[i] = std::max(stage[i], stage[input]);
        if (varies[input] && !varies[i]) stage[i] = stage[input];
        varies[i] = varies[i] || varies[input];
      }
      stage[i] += node.op->name == "register";
    }
    int last = 0, first = -1;
    for (const IntegerId id : graph_.outputs) {
      const size_t output = static_cast<size_t>(id);
      last = std::max(last, stage[output]);
      if (!varies[output]) continue;
      MASE_CHECK(first < 0 || stage[output] == first, "outputs come in the clock cycles {} and {}",
                 first, stage[output]);
      first = stage[output];
    }
    return first < 0 ? last : first;
  }

  // Names of the network's own; no two are equal, whatever the network calls its layers.
  void name_signals() {
    std::set<std::string> used = {options_.top, "clk",     "rst",      "in_valid",
                                  "out_valid",  "in_data", "out_data", "valid"};
    names_.resize(graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const IntegerNode& node = graph_.nodes[i];
      std::string name = node.name;
      if (name.empty()) {
        const std::string layer =
            node.layer >= 0 ? graph_.layers[static_cast<size_t>(node.layer)] : graph_.name;
        name = fmt::format("{}_{}", layer, i);
      }
      name = verilog_name(name);
      names_[i] = name;
      for (int count = 1; !used.insert(names_[i]).second; ++count)
        names_[i] = fmt::format("{}_v{}", name, count);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!graph_.nodes[i].op->entries && !graph_.nodes[i].op->cells) continue;
      std::string& parts = parts_[i];
      parts = names_[i] + (graph_.nodes[i].op->cells ? "_c" : "_t");
      while (std::any_of(used.lower_bound(parts), used.end(),
                         [&](const std::string& name) { return starts_with(name, parts); }))
        parts += "_t";
    }
  }

  VerilogOperand operand(IntegerId id) const {
    return {names_[static_cast<size_t>(id)], graph_.at(id).range};
  }

  std::string ports_text(const EmittedDesign& design) const {
    std::vector<std::string> ports;
    if (design.clocked) ports.push_back("    input  logic clk");
    if (design.valid) {
      ports.push_back("    input  logic rst");
      ports.push_back("    input  logic in_valid");
      ports.push_back("    output logic out_valid");
    }
    ports.push_back(fmt::format("    input  logic {}in_data", sliced_range(design.input_bits)));
    ports.push_back(fmt::format("    output logic {}out_data", sliced_range(design.output_bits)));
    return join(ports, ",\n");
  }

  std::string format_text(const IntegerNode& node) const {
    return fmt::format("{}{} bits, {} after the point, [{}, {}]",
                       node.range.is_signed() ? "signed " : "", node.range.width(), node.frac,
                       node.range.low, node.range.high);
  }

  std::string module_text(const EmittedDesign& design) {
    std::string text = fmt::format(
        "// {}: {}\n// Every value is a whole number; its binary point and range stand beside "
        "it.\n",
        options_.top, graph_.name);
    text += fmt::format(
        "// {} inputs, {} outputs, {}.\n", graph_.inputs.size(), graph_.outputs.size(),
        design.clocked ? fmt::format("{} clock cycles, one result every cycle", design.latency)
                       : "combinational");
    text += fmt::format(
        "// Bits that no sum below needs stay unread.\n/* verilator lint_off UNUSEDSIGNAL "
        "*/\n`default_nettype none\n\nmodule {} (\n{}\n);\n",
        options_.top, ports_text(design));
    int at = 0;
    for (const IntegerId id : graph_.inputs) {
      const int width = port_width(id);
      text += fmt::format("  wire {}{} = in_data[{}:{}];  // {}\n", vector_range(width),
                          names_[static_cast<size_t>(id)], at + width - 1, at,
                          format_text(graph_.at(id)));
      at += width;
    }
    int layer = -2;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const IntegerNode& node = graph_.nodes[i];
      if (!node.op->evaluate) continue;
      if (node.layer != layer) {
        layer = node.layer;
        if (layer >= 0)
          text += fmt::format("\n  // ---- {}\n", graph_.layers[static_cast<size_t>(layer)]);
      }
      text += node_text(i);
    }
    text += registers_text(design);
    std::vector<std::string> outputs;
    for (auto it = graph_.outputs.rbegin(); it != graph_.outputs.rend(); ++it)
      outputs.push_back(names_[static_cast<size_t>(*it)]);
    text += "\n";
    at = 0;
    for (const IntegerId id : graph_.outputs) {
      text += fmt::format("  // out_data[{}:{}]: {}\n", at + port_width(id) - 1, at,
                          format_text(graph_.at(id)));
      at += port_width(id);
    }
    text += fmt::format("  assign out_data = {{{}}};\nendmodule\n\n`default_nettype wire\n",
                        join(outputs, ", "));
    return text;
  }

  std::string node_text(size_t index) {
    const IntegerNode& node = graph_.nodes[index];
    const std::string& name = names_[index];
    const int width = std::max(1, node.range.width());
    const std::string note = fmt::format("  // {}", format_text(node));
    if (node.op->name == "register") {
      registers_.push_back(index);
      return fmt::format("  logic {}{};{}\n", vector_range(width), name, note);
    }
    if (node.op->entries) return table_text(index, note);
    std::vector<VerilogOperand> operands;
    for (const IntegerId input : node.inputs) operands.push_back(operand(input));
    if (node.op->cells)
      return fmt::format("  wire {}{};{}\n", vector_range(width), name, note) +
             node.op->cells(context_of(graph_, node), name, parts_.at(index), operands);
    MASE_CHECK(node.op->verilog != nullptr, "{} has no SystemVerilog", node.op->name);
    return fmt::format("  wire {}{} = {};{}\n", vector_range(width), name,
                       node.op->verilog(context_of(graph_, node), operands), note);
  }

  // Small tables: one constant vector for each bit of the result, chosen from by the operands'
  // bits. Larger ones: choices between smaller functions, each of which is written once; synthesis
  // takes many times as long over a vector of thousands of constants.
  std::string table_text(size_t index, const std::string& note) {
    const IntegerNode& node = graph_.nodes[index];
    const std::vector<int64_t> entries = node.op->entries(context_of(graph_, node));
    const int width = std::max(1, node.range.width());
    std::string text = fmt::format("  wire {}{};{}\n", vector_range(width), names_[index], note);
    const auto result_bit = [&](int bit) {
      return names_[index] + (width == 1 ? "" : fmt::format("[{}]", bit));
    };
    const auto written = [&](auto choices) {
      std::string lines = text;
      for (int bit = 0; bit < width; ++bit) {
        std::vector<bool> function;
        for (const int64_t entry : entries) function.push_back((entry >> bit & 1) != 0);
        const std::string value = choices.value_of(function);
        lines += choices.take_text() + fmt::format("  assign {} = {};\n", result_bit(bit), value);
      }
      return lines;
    };
    // Functions of few choices are left to synthesis, which joins them with what is around them.
    if (options_.table_cells && entries.size() >= most_vector_entries) {
      const std::string cells = written(TableCells(operand_bits(node), parts_.at(index))),
                        choices = written(TableChoices(operand_bits(node), parts_.at(index)));
      if (occurrences(choices, "  wire ") > choices_for_a_cell * occurrences(cells, "  table6 ")) {
        has_table_cells_ = true;
        return cells;
      }
    }
    if (entries.size() > most_vector_entries)
      return written(TableChoices(operand_bits(node), parts_.at(index)));
    std::vector<std::string> operands;
    for (size_t k = node.inputs.size(); k-- > 0;)
      operands.push_back(names_[static_cast<size_t>(node.inputs[k])]);
    const std::string place =
        operands.size() == 1 ? operands[0] : fmt::format("{{{}}}", join(operands, ", "));
    for (int bit = 0; bit < width; ++bit) {
      std::string digits;
      for (size_t first = 0; first < entries.size(); first += 4) {
        int nibble = 0;
        for (size_t k = first; k < std::min(entries.size(), first + 4); ++k)
          nibble |= static_cast<int>(entries[k] >> bit & 1) << (k - first);
        digits += "0123456789abcdef"[nibble];
      }
      std::reverse(digits.begin(), digits.end());
      const std::string table = fmt::format("{}{}", parts_.at(index), bit);
      text += fmt::format("  localparam [{}:0] {} = {}'h{};\n", entries.size() - 1, table,
                          entries.size(), digits);
      text += fmt::format("  assign {} = {}[{}];\n", result_bit(bit), table, place);
    }
    return text;
  }

  // A table's index, bit by bit.
  std::vector<std::string> operand_bits(const IntegerNode& node) const {
    std::vector<std::string> bits;
    for (const IntegerId id : node.inputs) {
      const std::string& name = names_[static_cast<size_t>(id)];
      const int width = port_width(id);
      for (int bit = 0; bit < width; ++bit)
        bits.push_back(width == 1 ? name : fmt::format("{}[{}]", name, bit));
    }
    return bits;
  }

  std::string registers_text(const EmittedDesign& design) const {
    if (!design.clocked) return "";
    std::string text = "\n  always_ff @(posedge clk) begin\n";
    for (const size_t index : registers_)
      text += fmt::format("    {} <= {};\n", names_[index],
                          names_[static_cast<size_t>(graph_.nodes[index].inputs[0])]);
    text += "  end\n";
    if (!design.valid) return text;
    text +=
        fmt::format("\n  logic {}valid;\n  always_ff @(posedge clk)\n    if (rst) valid <= {};\n",
                    vector_range(design.latency), literal_bits(0, design.latency));
    text += design.latency == 1
                ? "    else valid <= in_valid;\n  assign out_valid = valid;\n"
                : fmt::format(
                      "    else valid <= {{valid[{}:0], in_valid}};\n  assign out_valid = "
                      "valid[{}];\n",
                      design.latency - 2, design.latency - 1);
    return text;
  }

  const IntegerGraph& graph_;
  const EmitOptions& options_;
  std::vector<std::string> names_;
  std::map<size_t, std::string> parts_;  // how names of a table's bits, a chain's parts begin
  std::vector<size_t> registers_;
  bool has_table_cells_ = false;
};

const Register<EmitterRecord> registered{{
    .name = "unrolled",
    .summary = "every operation its own hardware, one result each clock cycle",
    .help = "For networks of up to some tens of thousands of additions.",
    .schema = {{valid_field()}},
    .emit = emit_unrolled,
}};

}  // namespace
}  // namespace mase::emit_unrolled_style

namespace mase {

EmittedDesign emit_unrolled(const IntegerGraph& graph, const EmitOptions& options) {
  return emit_unrolled_style::Writer(graph, options).write();
}

Field valid_field() {
  return {.name = "valid",
          .type = FieldType::boolean,
          .default_value = false,
          .help = "a valid bit travels with the data (needs a pipeline)"};
}

}  // namespace mase
