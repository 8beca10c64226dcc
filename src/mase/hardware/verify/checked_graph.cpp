// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/checked_graph.h"

#include <algorithm>
#include <bit>
#include <sstream>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/hardware/verify/meanings.h"

namespace mase {
namespace {

constexpr int widest_bits = 62;
constexpr int64_t most_lines = int64_t{1} << 30;

// A line's words, one after another.
class LineWords {
 public:
  LineWords(const std::string& line, std::string place) : line_(line), place_(std::move(place)) {}

  [[noreturn]] void refuse(const std::string& cause) const { throw Error(place_, cause); }

  bool next(std::string& word) { return static_cast<bool>(line_ >> word); }
  std::string word() {
    std::string word;
    if (!next(word)) refuse("something is missing at its end");
    return word;
  }
  void must_be(const std::string& text) {
    if (const std::string found = word(); found != text)
      refuse(fmt::format("'{}' stands where '{}' should", printable(found), text));
  }
  int64_t number(const std::string& text) const {
    const std::optional<int64_t> value = parse_integer(text);
    if (!value) refuse(fmt::format("'{}' is no whole number", printable(text)));
    return *value;
  }
  CheckedId id(const std::string& text, size_t known) const {
    const int64_t value = starts_with(text, "%") ? number(text.substr(1)) : -1;
    if (value < 0 || value >= static_cast<int64_t>(known))
      refuse(fmt::format("'{}' is no node before it", printable(text)));
    return static_cast<CheckedId>(value);
  }

 private:
  std::istringstream line_;
  std::string place_;
};

// [low, high]
Interval read_interval(LineWords& words) {
  std::string low = words.word(), high = words.word();
  if (!starts_with(low, "[") || !ends_with(low, ",") || !ends_with(high, "]"))
    words.refuse("an interval is not [low, high]");
  const Interval range{words.number(low.substr(1, low.size() - 2)),
                       words.number(high.substr(0, high.size() - 1))};
  if (range.low > range.high) words.refuse("its interval is empty");
  if (range.width() > widest_bits) words.refuse("its interval is too wide");
  return range;
}

std::vector<Interval> operand_intervals(const CheckedGraph& graph, const CheckedNode& node) {
  std::vector<Interval> in;
  for (const CheckedId id : node.inputs) in.push_back(graph.at(id).range);
  return in;
}

// Behind "%N =".
CheckedNode read_checked_node(LineWords& words, const CheckedGraph& graph) {
  CheckedNode node;
  const std::string name = words.word();
  std::string word = words.word();
  if (name == "input") {
    word = words.word();  // which one: in their order
  } else {
    node.op = find_meaning(name);
    if (!node.op) words.refuse(fmt::format("the checker knows no operation '{}'", printable(name)));
    for (; starts_with(word, "%"); word = words.word())
      node.inputs.push_back(words.id(word, graph.nodes.size()));
    for (size_t k = 0; word != ":"; ++k, word = words.word()) {
      if (k < node.op->numbers.size()) {
        if (!starts_with(word, node.op->numbers[k] + "="))
          words.refuse(fmt::format("'{}=' is missing", node.op->numbers[k]));
        word.erase(0, node.op->numbers[k].size() + 1);
      } else if (!node.op->more_numbers) {
        words.refuse(fmt::format("'{}' is one number too many", printable(word)));
      }
      node.numbers.push_back(words.number(word));
    }
    if (node.numbers.size() < node.op->numbers.size()) words.refuse("a number is missing");
    if (node.op->operands >= 0 && node.inputs.size() != static_cast<size_t>(node.op->operands))
      words.refuse(fmt::format("{} has {} operands", name, node.op->operands));
  }
  if (word != ":") words.refuse("':' is missing");
  words.must_be("frac");
  node.frac = words.number(words.word());
  node.range = read_interval(words);
  while (words.next(word)) words.word();  // its layer and name
  if (node.op && node.op->wrong)
    if (const std::string cause = node.op->wrong(node, operand_intervals(graph, node));
        !cause.empty())
      words.refuse(cause);
  return node;
}

// Where the operands' intervals say less than a node does, its own sum has to.
void check_intervals(const CheckedGraph& graph, const std::string& place) {
  std::vector<char> narrower(graph.nodes.size(), 0);
  const auto refuse = [&](size_t i) {
    throw Error(place, fmt::format("some values of node {} leave its interval", i));
  };
  bool any = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const CheckedNode& node = graph.nodes[i];
    if (!node.op || node.range.contains(interval_of(node, operand_intervals(graph, node))))
      continue;
    if (!node.op->sum) refuse(i);
    narrower[i] = any = true;
  }
  if (!any) return;
  visit_forms(graph, [&](size_t i, const CheckedForm& form) {
    if (narrower[i] && !graph.nodes[i].range.contains(interval_of(form, graph))) refuse(i);
  });
}

bool is_sum(const CheckedNode& node) { return node.op && node.op->sum; }

CheckedForm form_of(const CheckedGraph& graph, const CheckedNode& node,
                    const std::vector<CheckedForm>& forms) {
  const SumMeaning sum = node.op->sum(node);
  CheckedForm form{{}, sum.constant};
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (sum.factors[k] == 0) continue;
    const CheckedId id = node.inputs[k];
    if (!is_sum(graph.at(id))) {
      form.terms.emplace_back(id, sum.factors[k]);
      continue;
    }
    const CheckedForm& part = forms[static_cast<size_t>(id)];
    form.constant = exact_sum(form.constant, exact_product(part.constant, sum.factors[k]));
    for (const auto& [root, factor] : part.terms)
      form.terms.emplace_back(root, exact_product(factor, sum.factors[k]));
  }
  std::sort(form.terms.begin(), form.terms.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const auto& [id, factor] : form.terms)
    if (kept > 0 && form.terms[kept - 1].first == id)
      form.terms[kept - 1].second = exact_sum(form.terms[kept - 1].second, factor);
    else
      form.terms[kept++] = {id, factor};
  form.terms.resize(kept);
  std::erase_if(form.terms, [](const auto& term) { return term.second == 0; });
  return form;
}

}  // namespace

int Interval::width() const {
  const auto bits = [](int64_t value) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(value < 0 ? ~value : value)));
  };
  return std::max(bits(low), bits(high)) + (low < 0);
}

int CheckedGraph::wire_width(CheckedId id) const { return std::max(1, at(id).range.width()); }

int64_t exact_product(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw Error("integer graph", "a number is beyond 64 bits");
  return result;
}

int64_t exact_sum(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    throw Error("integer graph", "a number is beyond 64 bits");
  return result;
}

CheckedGraph read_checked_graph(const std::string& text, const std::string& place) {
  CheckedGraph graph;
  std::istringstream lines(text);
  std::string line;
  bool ended = false;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    LineWords words(line, fmt::format("{}:{}", place, number));
    std::string first;
    if (!words.next(first) || first == "graph" || first == "layer") continue;
    if (ended) words.refuse("something stands behind the outputs");
    if (first == "output") {
      for (std::string word; words.next(word);)
        graph.outputs.push_back(words.id(word, graph.nodes.size()));
      ended = true;
      continue;
    }
    if (first != fmt::format("%{}", graph.nodes.size()))
      words.refuse("nodes are numbered from 0 in order");
    if (static_cast<int64_t>(graph.nodes.size()) >= most_lines) words.refuse("too many nodes");
    words.must_be("=");
    CheckedNode node = read_checked_node(words, graph);
    if (!node.op) graph.inputs.push_back(static_cast<CheckedId>(graph.nodes.size()));
    graph.nodes.push_back(std::move(node));
  }
  if (!ended) throw Error(place, "the outputs are missing");
  check_intervals(graph, place);
  return graph;
}

void visit_forms(const CheckedGraph& graph,
                 const std::function<void(size_t node, const CheckedForm& form)>& visit) {
  std::vector<size_t> last_reader(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (is_sum(graph.nodes[i]))
      for (const CheckedId id : graph.nodes[i].inputs) last_reader[static_cast<size_t>(id)] = i;
  std::vector<CheckedForm> forms(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const CheckedNode& node = graph.nodes[i];
    if (!is_sum(node)) {
      visit(i, {{{static_cast<CheckedId>(i), 1}}, 0});
      continue;
    }
    CheckedForm form = form_of(graph, node, forms);
    visit(i, form);
    if (last_reader[i] > i) forms[i] = std::move(form);
    for (const CheckedId id : node.inputs)
      if (last_reader[static_cast<size_t>(id)] == i) forms[static_cast<size_t>(id)] = {};
  }
}

Interval interval_of(const CheckedForm& form, const CheckedGraph& graph) {
  Interval total{form.constant, form.constant};
  for (const auto& [id, factor] : form.terms) {
    const int64_t a = exact_product(factor, graph.at(id).range.low),
                  b = exact_product(factor, graph.at(id).range.high);
    total = {exact_sum(total.low, std::min(a, b)), exact_sum(total.high, std::max(a, b))};
  }
  return total;
}

}  // namespace mase
