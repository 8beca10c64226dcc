// SPDX-License-Identifier: Apache-2.0
// The same function for other people's software: one header, no dependencies, C++11; and a program
// that compares it with every row of the testbench.
#include <algorithm>
#include <set>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/emit/verilog_text.h"

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
  if (std::none_of(graph.inputs.begin(), graph.inputs.end(),
                   [&](IntegerId id) { return used.count(id) > 0; }))
    text += "  (void)in;\n";  // nothing depends on it
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

std::string cpp_check_text(const IntegerGraph& graph, const EmittedDesign& design,
                           const std::string& name) {
  // By places in a row of vectors.hex.
  const auto place = [](const std::vector<int>& order, size_t k) {
    return order.empty() ? k : static_cast<size_t>(order[k]);
  };
  const auto list = [&](const std::vector<IntegerId>& ids, const std::vector<int>& order,
                        const auto& number) {
    std::vector<std::string> texts;
    for (size_t k = 0; k < ids.size(); ++k)
      texts.push_back(std::to_string(number(graph.at(ids[place(order, k)]).range)));
    return join(texts, ", ");
  };
  const auto places = [&](const std::vector<IntegerId>& ids, const std::vector<int>& order) {
    std::vector<std::string> texts;
    for (size_t k = 0; k < ids.size(); ++k) texts.push_back(std::to_string(place(order, k)));
    return join(texts, ", ");
  };
  const auto width_of = [](int element) {
    return [element](const IntegerRange& range) {
      return element > 0 ? element : std::max(1, range.width());
    };
  };
  const auto is_signed = [](const IntegerRange& range) { return range.is_signed() ? 1 : 0; };
  return fmt::format(
      "// Compares {0}.h with every row of vectors.hex: make cpp.\n"
      "#include \"{0}.h\"\n\n#include <fstream>\n#include <iostream>\n#include <string>\n\n"
      "namespace {{\n\n"
      "const int in_width[] = {{{1}}}, in_signed[] = {{{2}}}, in_code[] = {{{6}}};\n"
      "const int out_width[] = {{{3}}}, out_signed[] = {{{4}}}, out_code[] = {{{7}}};\n\n"
      "// Codes side by side in hexadecimal digits, the first one lowest.\n"
      "void unpack(const std::string& digits, const int* width, const int* has_sign, const int* "
      "code,\n"
      "            int count, std::int64_t* codes) {{\n"
      "  std::size_t at = 0;\n"
      "  for (int k = 0; k < count; ++k) {{\n"
      "    std::int64_t& value = codes[code[k]];\n    value = 0;\n"
      "    for (int bit = 0; bit < width[k]; ++bit, ++at) {{\n"
      "      const char digit = digits.at(digits.size() - 1 - at / 4);\n"
      "      const int nibble = digit <= '9' ? digit - '0' : digit - 'a' + 10;\n"
      "      value += std::int64_t(nibble >> at % 4 & 1) << bit;\n    }}\n"
      "    if (has_sign[k] && value >> (width[k] - 1)) value -= std::int64_t(1) << width[k];\n  "
      "}}\n}}\n\n"
      "}}  // namespace\n\n"
      "int main(int argc, char** argv) {{\n"
      "  std::ifstream file(argc > 1 ? argv[1] : \"../sim/vectors.hex\");\n"
      "  std::string in, out;\n"
      "  std::int64_t x[{5}::inputs], y[{5}::outputs], wanted[{5}::outputs];\n"
      "  long rows = 0, mismatches = 0;\n"
      "  for (; file >> in >> out; ++rows) {{\n"
      "    unpack(in, in_width, in_signed, in_code, {5}::inputs, x);\n"
      "    unpack(out, out_width, out_signed, out_code, {5}::outputs, wanted);\n"
      "    {5}::run(x, y);\n"
      "    bool same = true;\n"
      "    for (int k = 0; k < {5}::outputs; ++k) same = same && y[k] == wanted[k];\n"
      "    if (!same && mismatches++ < 10) std::cout << \"row \" << rows << \" differs\\n\";\n  "
      "}}\n"
      "  std::cout << (rows > 0 && mismatches == 0 ? \"PASS: \" : \"FAIL: \") << rows << \" rows, "
      "\"\n"
      "            << mismatches << \" mismatches\\n\";\n"
      "  return rows > 0 && mismatches == 0 ? 0 : 1;\n}}\n",
      name, list(graph.inputs, design.input_order, width_of(design.input_element)),
      list(graph.inputs, design.input_order, is_signed),
      list(graph.outputs, design.output_order, width_of(design.output_element)),
      list(graph.outputs, design.output_order, is_signed), verilog_name(name),
      places(graph.inputs, design.input_order), places(graph.outputs, design.output_order));
}

}  // namespace mase
