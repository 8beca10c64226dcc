// SPDX-License-Identifier: Apache-2.0
// A graph as torch.fx prints it:
//   %seq_blocks_0 : [num_users=1] = call_module[target=seq_blocks.0](args = (%x,), kwargs = {})
#include <optional>

#include "mase/base/text.h"
#include "mase/ir/graph.h"
#include "mase/ir/op.h"

namespace mase {
namespace {

std::string literal_text(const Value& value) {
  return value.is_string() ? value.as_string() : python_repr(value);
}

// An index as Python prints it: (slice(None, None, None), 0).
std::string index_text(const Value& index) {
  if (index.is_dict()) {
    std::vector<std::string> limits;
    for (const Value& limit : index["slice"].as_list()) limits.push_back(python_repr(limit));
    return fmt::format("slice({})", fmt::join(limits, ", "));
  }
  if (index.is_string() && index.as_string() == "...") return "Ellipsis";
  if (!index.is_list()) return literal_text(index);
  std::vector<std::string> parts;
  for (const Value& part : index.as_list()) parts.push_back(index_text(part));
  return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
}

std::string argument_text(const Graph& graph, const Argument& argument) {
  if (argument.is_node()) return "%" + graph.node(argument.id()).name;
  if (const Value* literal = std::get_if<Value>(&argument.data)) return literal_text(*literal);
  std::vector<std::string> parts;
  for (const Argument& item : std::get<std::vector<Argument>>(argument.data))
    parts.push_back(argument_text(graph, item));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string target_text(const Node& node) {
  if (node.kind != NodeKind::call_function) return node.target;
  const OpRecord* op = Registry<OpRecord>::instance().find(node.target);
  return op && !op->function.empty() ? op->function : node.target;
}

// Where PyTorch writes a number among the tensors that we hold by name: 1 - x has its `input`
// first; functions that take numbers along a dimension have the dimension before the numbers.
std::optional<size_t> position_of(const Node& node, const std::string& key) {
  if (node.kind != NodeKind::call_function && node.kind != NodeKind::call_method) return {};
  const OpRecord* op = Registry<OpRecord>::instance().find(node.target);
  if (!op) return {};
  if (key == "input" && node.args.size() == 1) return 0;
  const bool by_numbers = op->index_inputs == std::vector<size_t>{1} && node.args.size() == 2;
  return key == "dim" && by_numbers ? std::optional<size_t>(1) : std::nullopt;
}

std::string call_text(const Graph& graph, const Node& node) {
  std::vector<std::string> args, kwargs;
  const bool indexed = node.kind == NodeKind::call_function && node.target == "getitem";
  for (const Argument& argument : node.args) {
    const Value* literal = std::get_if<Value>(&argument.data);
    args.push_back(indexed && literal ? index_text(*literal) : argument_text(graph, argument));
  }
  for (const auto& [key, argument] : node.kwargs) {
    const std::string text = argument_text(graph, argument);
    if (const auto place = position_of(node, key))
      args.insert(args.begin() + static_cast<std::ptrdiff_t>(*place), text);
    else
      kwargs.push_back(key + ": " + text);
  }
  return fmt::format("(args = ({}{}), kwargs = {{{}}})", fmt::join(args, ", "),
                     args.size() == 1 ? "," : "", fmt::join(kwargs, ", "));
}

}  // namespace

std::string Graph::text() const {
  std::string out = "graph():\n";
  const std::vector<std::vector<NodeId>> users = use_lists();
  for (const NodeId id : order_) {
    const Node& node = this->node(id);
    if (node.kind == NodeKind::output) {
      std::vector<std::string> names;
      for (const NodeId result : inputs_of(id)) names.push_back(this->node(result).name);
      out += names.size() == 1 ? fmt::format("    return {}\n", names.front())
                               : fmt::format("    return ({})\n", fmt::join(names, ", "));
      continue;
    }
    out += fmt::format("    %{} : [num_users={}] = {}[target={}]", node.name,
                       users[static_cast<size_t>(id)].size(), node_kind_name(node.kind),
                       target_text(node));
    if (node.kind != NodeKind::placeholder && node.kind != NodeKind::get_attr)
      out += call_text(*this, node);
    out += "\n";
  }
  return out;
}

}  // namespace mase
