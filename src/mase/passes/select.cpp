// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/select.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "mase/base/fields.h"
#include "mase/base/pattern.h"
#include "mase/base/text.h"
#include "mase/ir/layer_text.h"

namespace mase {
namespace {

std::vector<std::string> known_names(const Graph& graph, SelectBy by) {
  std::set<std::string> names;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (by == SelectBy::type && !op_of(graph, node)) continue;
    names.insert(by == SelectBy::type ? mase_op(graph, node) : node.name);
  }
  return {names.begin(), names.end()};
}

// The names nearest to a pattern; where none is near, those of the first layers. A large network
// has thousands.
std::string near_names(const Graph& graph, SelectBy by, const std::string& pattern) {
  const std::vector<std::string> names = known_names(graph, by);
  if (names.empty()) return "";
  std::string letters = pattern;  // without what only expressions have
  std::erase_if(letters, [](char c) {
    return !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.';
  });
  while (!letters.empty() && letters.back() == '.') letters.pop_back();
  const std::vector<std::string> near = nearest_names(letters, names);
  if (!near.empty()) return fmt::format("did you mean '{}'?", join(near, "' or '"));
  std::vector<std::string> layers;  // they are meant more often than sums and reshapes
  for (const NodeId id : graph.order())
    if (by != SelectBy::type && graph.module_of(graph.node(id)))
      layers.push_back(graph.node(id).name);
  const std::vector<std::string>& known = layers.empty() ? names : layers;
  constexpr size_t most = 12;
  const std::vector<std::string> first(
      known.begin(), known.begin() + static_cast<std::ptrdiff_t>(std::min(most, known.size())));
  return (layers.empty() ? "known: " : "layers: ") + join(first, ", ") +
         (known.size() > most ? fmt::format(" and {} more", known.size() - most) : "");
}

// What the user may have meant: the right word under another `by`, or a near one.
std::string advice(const Graph& graph, SelectBy by, const std::string& pattern) {
  if (by == SelectBy::type && graph.find(pattern))
    return "that is a node's name: set by = \"name\"";
  const std::vector<std::string> types = known_names(graph, SelectBy::type);
  if (by != SelectBy::type && std::count(types.begin(), types.end(), pattern))
    return "that is an op: set by = \"type\"";
  if (by == SelectBy::type && Registry<OpRecord>::instance().find(pattern))
    return "the network has: " + join(types, ", ");
  return near_names(graph, by, pattern);
}

}  // namespace

Field by_field() {
  return text_field("by", "how nodes are chosen: by op, by node name, or by expression over names",
                    "type", {"type", "name", "regex_name"});
}

SelectBy select_by(const Value& by) {
  const std::string& text = by.as_string("by");
  return text == "type" ? SelectBy::type : text == "name" ? SelectBy::name : SelectBy::regex_name;
}

std::vector<NodeId> select_nodes(const Graph& graph, SelectBy by, const std::string& pattern,
                                 const Position& position, const std::string& path,
                                 Problems& problems) {
  std::vector<NodeId> found;
  std::optional<Pattern> expression;
  if (by == SelectBy::regex_name) {
    try {
      expression.emplace(pattern);
    } catch (const Error& error) {
      problems.add(Error(position, path, error.cause(), error.remedy()));
      return found;
    }
  }
  const OpRecord* op = Registry<OpRecord>::instance().find(pattern);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!op_of(graph, node)) continue;
    bool match = false;
    if (by == SelectBy::type)
      match = mase_op(graph, node) == (op ? op->name : pattern);
    else if (by == SelectBy::name)
      match = node.name == pattern || (graph.module_of(node) && node.target == pattern);
    else
      match = expression->matches(node.name);
    if (match) found.push_back(id);
  }
  if (found.empty())
    problems.add(Error(
        position, path,
        fmt::format("no node {} '{}'",
                    by == SelectBy::type   ? "is a"
                    : by == SelectBy::name ? "is named"
                                           : "has a name that matches",
                    printable(pattern)),
        by == SelectBy::regex_name ? near_names(graph, by, pattern) : advice(graph, by, pattern)));
  return found;
}

std::vector<NodeId> select_nodes(const Graph& graph, SelectBy by, const Value& patterns,
                                 const std::string& path, Problems& problems) {
  std::set<NodeId> wanted;
  const auto take = [&](const Value& pattern) {
    if (!pattern.is_string()) {
      problems.add(Error(pattern.position(), path,
                         fmt::format("expected text, got {}", pattern.type_name())));
      return;
    }
    for (const NodeId id :
         select_nodes(graph, by, pattern.as_string(), pattern.position(), path, problems))
      wanted.insert(id);
  };
  if (patterns.is_list()) {
    for (const Value& pattern : patterns.as_list()) take(pattern);
  } else if (!patterns.is_null()) {
    take(patterns);
  }
  std::vector<NodeId> ordered;
  for (const NodeId id : graph.order())
    if (wanted.count(id)) ordered.push_back(id);
  return ordered;
}

}  // namespace mase
