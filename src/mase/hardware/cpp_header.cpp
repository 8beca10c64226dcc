// SPDX-License-Identifier: Apache-2.0
// The same function for other people's software: one header, no dependencies, C++11.
#include <set>

#include "mase/hardware/emitter.h"
#include "mase/hardware/verilog_text.h"

namespace mase {

std::string cpp_header_text(const IntegerGraph& graph, const std::string& name) {
  const std::string space = verilog_name(name);
  std::string text = fmt::format(
      "// {}: the emitted design as a function of codes, bit for bit. A code c with f bits after "
      "the\n"
      "// point means c * 2^-f. Made from the same graph as the SystemVerilog beside it.\n"
      "#pragma once\n#include <cstdint>\n\nnamespace {} {{\n\n",
      graph.name, space);
  text += fmt::format("constexpr int inputs = {}, outputs = {};\n", graph.inputs.size(),
                      graph.outputs.size());
  const auto fracs = [&](const std::vector<IntegerId>& ids) {
    std::vector<std::string> list;
    for (const IntegerId id : ids) list.push_back(std::to_string(graph.at(id).frac));
    return join(list, ", ");
  };
  text += fmt::format("constexpr int input_fraction_bits[] = {{{}}};\n", fracs(graph.inputs));
  text += fmt::format("constexpr int output_fraction_bits[] = {{{}}};\n\n", fracs(graph.outputs));
  text +=
      "inline std::int64_t up(std::int64_t a, int n) { return a * (std::int64_t(1) << n); }\n"
      "// Rounded down, whatever the compiler does with negative numbers.\n"
      "inline std::int64_t down(std::int64_t a, int n) {\n"
      "  const std::int64_t d = std::int64_t(1) << n;\n"
      "  return a >= 0 ? a / d : -((-a + d - 1) / d);\n}\n"
      "inline std::int64_t limit(std::int64_t a, std::int64_t low, std::int64_t high) {\n"
      "  return a < low ? low : a > high ? high : a;\n}\n"
      "// The number with the same lowest bits in [low, low + 2^width).\n"
      "inline std::int64_t around(std::int64_t a, int width, std::int64_t low) {\n"
      "  const std::int64_t m = std::int64_t(1) << width;\n"
      "  return a - m * down(a - low, width);\n}\n\n"
      "inline void run(const std::int64_t* in, std::int64_t* out) {\n";
  std::set<IntegerId> used(graph.outputs.begin(), graph.outputs.end());
  for (const IntegerNode& node : graph.nodes) used.insert(node.inputs.begin(), node.inputs.end());
  for (size_t k = 0; k < graph.inputs.size(); ++k)
    if (used.count(graph.inputs[k]))
      text += fmt::format("  const std::int64_t v{} = in[{}];\n", graph.inputs[k], k);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    if (!node.op->evaluate) continue;
    MASE_CHECK(node.op->cpp != nullptr, "{} has no C++", node.op->name);
    std::vector<std::string> operands;
    for (const IntegerId input : node.inputs) operands.push_back(fmt::format("v{}", input));
    if (node.op->name == "table") {
      std::vector<std::string> entries;
      for (size_t k = 2; k < node.numbers.size(); ++k)
        entries.push_back(std::to_string(node.numbers[k]));
      text += fmt::format("  static const std::int64_t t{}[] = {{{}}};\n", i, join(entries, ", "));
      operands.push_back(fmt::format("t{}", i));
    }
    text += fmt::format("  const std::int64_t v{} = {};\n", i,
                        node.op->cpp(context_of(graph, node), operands));
  }
  for (size_t k = 0; k < graph.outputs.size(); ++k)
    text += fmt::format("  out[{}] = v{};\n", k, graph.outputs[k]);
  return text + fmt::format("}}\n\n}}  // namespace {}\n", space);
}

}  // namespace mase
