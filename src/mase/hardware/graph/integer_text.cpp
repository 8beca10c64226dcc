// SPDX-License-Identifier: Apache-2.0
// The text form of integer graphs:
//
//   graph w4_toy
//   layer 0 seq_blocks_0
//   %0 = input index=0 : frac 2 [-32, 31] layer 0 name x_0
//   %9 = add %0 %3 shift_a=0 shift_b=2 carry=0 : frac 4 [-160, 155] layer 0
//   output %9
#include <algorithm>
#include <cctype>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {
namespace {

struct LineReader {
  std::vector<std::string> words;
  std::string place;
  size_t next = 0;

  [[noreturn]] void fail(const std::string& cause) const { throw Error(place, cause); }
  bool done() const { return next == words.size(); }
  const std::string& word(const char* what) {
    if (done()) fail(fmt::format("{} is missing", what));
    return words[next++];
  }
  void expect(const std::string& text) {
    if (word(text.c_str()) != text) fail(fmt::format("'{}' is missing", text));
  }
  int64_t integer(std::string text, const char* what) const {
    const std::optional<int64_t> value = parse_integer(text);
    if (!value) fail(fmt::format("{} is '{}', not a whole number", what, printable(text)));
    return *value;
  }
  IntegerId id(const std::string& text) const {
    if (text.size() < 2 || text[0] != '%') fail(fmt::format("'{}' names no node", printable(text)));
    const int64_t value = integer(text.substr(1), "a node");
    if (value < 0 || value > (int64_t{1} << 30)) fail("a node's number is out of range");
    return static_cast<IntegerId>(value);
  }
};

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string& word : split(line, ' '))
    if (!word.empty()) words.push_back(word);
  return words;
}

void read_tail(LineReader& line, IntegerNode& node) {
  line.expect(":");
  line.expect("frac");
  const int64_t frac = line.integer(line.word("the binary point"), "the binary point");
  if (frac < -1000 || frac > 1000) line.fail("the binary point is out of range");
  node.frac = static_cast<int>(frac);
  const auto bound = [&](const char* what, char before, char after) {
    std::string text = line.word(what);
    if (before && (text.empty() || text.front() != before)) line.fail("'[' is missing");
    if (before) text.erase(0, 1);
    if (text.empty() || text.back() != after) line.fail(fmt::format("'{}' is missing", after));
    text.pop_back();
    return line.integer(text, what);
  };
  node.range.low = bound("the lowest value", '[', ',');
  node.range.high = bound("the highest value", 0, ']');
  while (!line.done()) {
    const std::string key = line.word("a key");
    if (key == "layer") {
      const int64_t layer = line.integer(line.word("the layer"), "the layer");
      if (layer < 0 || layer > (int64_t{1} << 30)) line.fail("the layer is out of range");
      node.layer = static_cast<int>(layer);
    } else if (key == "name") {
      node.name = line.word("the name");
    } else {
      line.fail(fmt::format("'{}' is not known here", printable(key)));
    }
  }
}

IntegerNode read_node(LineReader& line) {
  line.expect("=");
  const std::string name = line.word("the operation");
  const IntegerOpRecord* op = Registry<IntegerOpRecord>::instance().find(name);
  if (!op)
    line.fail(fmt::format("unknown integer operation '{}'; {}", printable(name),
                          suggestion(name, Registry<IntegerOpRecord>::instance().names())));
  IntegerNode node{.op = op};
  while (!line.done() && line.words[line.next][0] == '%')
    node.inputs.push_back(line.id(line.words[line.next++]));
  for (const std::string& number : op->numbers) {
    const std::string& word = line.word(number.c_str());
    if (!starts_with(word, number + "=")) line.fail(fmt::format("'{}=' is missing", number));
    node.numbers.push_back(line.integer(word.substr(number.size() + 1), number.c_str()));
  }
  while (op->more_numbers && !line.done() && line.words[line.next] != ":")
    node.numbers.push_back(line.integer(line.words[line.next++], "a number"));
  read_tail(line, node);
  return node;
}

}  // namespace

std::string to_text(const IntegerGraph& graph) {
  std::string text = fmt::format("graph {}\n", graph.name);
  for (size_t i = 0; i < graph.layers.size(); ++i)
    text += fmt::format("layer {} {}\n", i, graph.layers[i]);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    text += fmt::format("%{} = {}", i, node.op->name);
    for (const IntegerId input : node.inputs) text += fmt::format(" %{}", input);
    for (size_t k = 0; k < node.numbers.size(); ++k)
      text += k < node.op->numbers.size()
                  ? fmt::format(" {}={}", node.op->numbers[k], node.numbers[k])
                  : fmt::format(" {}", node.numbers[k]);
    text += fmt::format(" : frac {} [{}, {}]", node.frac, node.range.low, node.range.high);
    if (node.layer >= 0) text += fmt::format(" layer {}", node.layer);
    if (!node.name.empty()) text += fmt::format(" name {}", node.name);
    text += '\n';
  }
  text += "output";
  for (const IntegerId output : graph.outputs) text += fmt::format(" %{}", output);
  return text + "\n";
}

IntegerGraph integer_graph_from_text(const std::string& text, const std::string& place) {
  IntegerGraph graph;
  const std::vector<std::string> lines = split(text, '\n');
  bool ended = false;
  for (size_t number = 0; number < lines.size(); ++number) {
    LineReader line{words_of(lines[number]), fmt::format("{}:{}", place, number + 1)};
    if (line.words.empty()) continue;
    if (ended) line.fail("there is something after the outputs");
    const std::string first = line.word("a line");
    if (first == "graph") {
      graph.name = line.word("the name");
    } else if (first == "layer") {
      if (line.integer(line.word("the layer"), "the layer") !=
          static_cast<int64_t>(graph.layers.size()))
        line.fail("layers are numbered from 0");
      graph.layers.push_back(line.word("the name"));
    } else if (first == "output") {
      while (!line.done()) graph.outputs.push_back(line.id(line.words[line.next++]));
      ended = true;
    } else {
      if (line.id(first) != static_cast<IntegerId>(graph.nodes.size()))
        line.fail("nodes are numbered from 0 in order");
      graph.nodes.push_back(read_node(line));
      if (!graph.nodes.back().op->evaluate)
        graph.inputs.push_back(static_cast<IntegerId>(graph.nodes.size() - 1));
    }
  }
  if (!ended) throw Error(place, "the outputs are missing");
  verify(graph);
  return graph;
}

}  // namespace mase
