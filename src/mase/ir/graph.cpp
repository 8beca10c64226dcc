// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/graph.h"

#include <algorithm>
#include <set>

#include "mase/base/text.h"

namespace mase {
namespace {

void collect(const Argument& argument, std::vector<NodeId>& ids) {
  if (argument.is_node()) ids.push_back(argument.id());
  if (const auto* items = std::get_if<std::vector<Argument>>(&argument.data))
    for (const Argument& item : *items) collect(item, ids);
}

void replace(Argument& argument, NodeId old_id, NodeId new_id) {
  if (argument.is_node() && argument.id() == old_id) argument = Argument::node(new_id);
  if (auto* items = std::get_if<std::vector<Argument>>(&argument.data))
    for (Argument& item : *items) replace(item, old_id, new_id);
}

template <class Table>
auto find_tensor(Table& table, const std::string& name) -> decltype(&table.front().second) {
  for (auto& [key, tensor] : table)
    if (key == name) return &tensor;
  return nullptr;
}

}  // namespace

const char* node_kind_name(NodeKind kind) {
  const char* names[] = {"placeholder", "get_attr",    "call_function",
                         "call_method", "call_module", "output"};
  return names[static_cast<size_t>(kind)];
}

const Tensor* Module::find(const std::string& name) const {
  if (const Tensor* parameter = find_tensor(parameters, name)) return parameter;
  return find_tensor(buffers, name);
}

Tensor* Module::find(const std::string& name) {
  return const_cast<Tensor*>(static_cast<const Module*>(this)->find(name));
}

std::string Graph::unique_name(const std::string& wanted) const {
  std::string base = wanted;
  for (char& c : base)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base = "_" + base;
  // A number at the end is counted on: a second add_1 becomes add_2. Python's own names are taken.
  static const std::set<std::string> builtins = {
      "abs",   "all", "any",   "bool",  "dict",  "filter", "float", "hash", "id",
      "input", "int", "iter",  "len",   "list",  "map",    "max",   "min",  "next",
      "open",  "pow", "print", "range", "round", "set",    "str",   "sum",  "type"};
  std::string stem = base, name = base;
  int64_t number = 0;
  const size_t underscore = base.rfind('_');
  if (underscore != std::string::npos && underscore > 0)
    if (const auto digits = parse_integer(base.substr(underscore + 1));
        digits && *digits >= 0 && *digits < (int64_t{1} << 40)) {
      stem = base.substr(0, underscore);
      number = *digits;
    }
  if (!builtins.count(name) && !find(name)) return name;
  // The first number that is free, by one look at all names: loops make thousands of one stem.
  std::vector<bool> taken(order_.size() + 2, false);
  for (const NodeId id : order_) {
    const std::string& known = node(id).name;
    if (known.size() < stem.size() + 2 || known[stem.size()] != '_' ||
        known.compare(0, stem.size(), stem) != 0 || known[stem.size() + 1] == '0')
      continue;
    if (const auto digits = parse_integer(std::string_view(known).substr(stem.size() + 1)))
      if (*digits > number && *digits - number < static_cast<int64_t>(taken.size()))
        taken[static_cast<size_t>(*digits - number)] = true;
  }
  for (size_t ahead = 1;; ++ahead) {
    if (ahead < taken.size() && taken[ahead]) continue;
    name = fmt::format("{}_{}", stem, number + static_cast<int64_t>(ahead));
    if (!builtins.count(name)) return name;
  }
}

NodeId Graph::add_node(Node node) {
  node.id = static_cast<NodeId>(nodes_.size());
  node.name = unique_name(node.name);
  const NodeId id = node.id;
  nodes_.push_back(std::move(node));
  auto place = insertion_ < 0 ? order_.end() : std::find(order_.begin(), order_.end(), insertion_);
  order_.insert(place, id);
  return id;
}

NodeId Graph::add_placeholder(const std::string& placeholder, Shape sample_shape, DType element) {
  Node node;
  node.name = placeholder;
  node.target = placeholder;
  node.sample_shape = std::move(sample_shape);
  node.element = element;
  return add_node(std::move(node));
}

NodeId Graph::add_constant(const std::string& wanted, Tensor value, bool trainable) {
  MASE_CHECK(!tensor(wanted), "tensor '{}' exists", wanted);
  const size_t dot = wanted.rfind('.');
  Module& module = modules_[dot == std::string::npos ? "" : wanted.substr(0, dot)];
  (trainable ? module.parameters : module.buffers)
      .emplace_back(wanted.substr(dot == std::string::npos ? 0 : dot + 1), std::move(value));
  return get_attr(wanted);
}

NodeId Graph::get_attr(const std::string& wanted) {
  MASE_CHECK(tensor(wanted), "no tensor '{}'", wanted);
  Node node;
  node.name = wanted;
  node.kind = NodeKind::get_attr;
  node.target = wanted;
  return add_node(std::move(node));
}

NodeId Graph::add_module(const std::string& path, Module module,
                         const std::vector<NodeId>& inputs) {
  MASE_CHECK(!modules_.count(path), "module '{}' exists", path);
  modules_.emplace(path, std::move(module));
  std::vector<Argument> args;
  for (const NodeId id : inputs) args.push_back(Argument::node(id));
  return call_module(path, std::move(args));
}

NodeId Graph::call_module(const std::string& path, std::vector<Argument> args) {
  MASE_CHECK(modules_.count(path), "no module '{}'", path);
  Node node;
  node.name = path;
  node.kind = NodeKind::call_module;
  node.target = path;
  node.args = std::move(args);
  return add_node(std::move(node));
}

NodeId Graph::call_function(const std::string& op, std::vector<Argument> args,
                            std::vector<std::pair<std::string, Argument>> kwargs) {
  Node node;
  node.name = op;
  node.kind = NodeKind::call_function;
  node.target = op;
  node.args = std::move(args);
  node.kwargs = std::move(kwargs);
  return add_node(std::move(node));
}

NodeId Graph::call_method(const std::string& method, std::vector<Argument> args,
                          std::vector<std::pair<std::string, Argument>> kwargs) {
  const NodeId id = call_function(method, std::move(args), std::move(kwargs));
  node(id).kind = NodeKind::call_method;
  return id;
}

NodeId Graph::result_of(NodeId several, int64_t index) {
  return call_function("getitem", {Argument::node(several), Argument::literal(index)});
}

NodeId Graph::add_output(std::vector<NodeId> results) {
  Node node;
  node.name = "output";
  node.kind = NodeKind::output;
  node.target = "output";
  if (results.size() == 1) {
    node.args.push_back(Argument::node(results.front()));
  } else {
    std::vector<Argument> items;
    for (const NodeId id : results) items.push_back(Argument::node(id));
    node.args.push_back(Argument::list(std::move(items)));
  }
  return add_node(std::move(node));
}

const Node* Graph::find(const std::string& wanted) const {
  for (const NodeId id : order_)
    if (node(id).name == wanted) return &node(id);
  return nullptr;
}

std::vector<NodeId> Graph::placeholders() const {
  std::vector<NodeId> ids;
  for (const NodeId id : order_)
    if (node(id).kind == NodeKind::placeholder) ids.push_back(id);
  return ids;
}

std::vector<NodeId> Graph::outputs() const {
  for (const NodeId id : order_)
    if (node(id).kind == NodeKind::output) return inputs_of(id);
  return {};
}

std::vector<NodeId> Graph::inputs_of(NodeId id) const {
  std::vector<NodeId> ids;
  for (const Argument& argument : node(id).args) collect(argument, ids);
  for (const auto& [key, argument] : node(id).kwargs) collect(argument, ids);
  return ids;
}

std::vector<NodeId> Graph::users(NodeId id) const {
  std::vector<NodeId> found;
  for (const NodeId candidate : order_) {
    const std::vector<NodeId> inputs = inputs_of(candidate);
    if (std::count(inputs.begin(), inputs.end(), id)) found.push_back(candidate);
  }
  return found;
}

std::vector<std::vector<NodeId>> Graph::use_lists() const {
  std::vector<std::vector<NodeId>> lists(nodes_.size());
  for (const NodeId user : order_)
    for (const NodeId input : inputs_of(user)) {
      std::vector<NodeId>& list = lists[static_cast<size_t>(input)];
      if (list.empty() || list.back() != user) list.push_back(user);
    }
  return lists;
}

const Module* Graph::module_of(const Node& node) const {
  if (node.kind != NodeKind::call_module) return nullptr;
  auto module = modules_.find(node.target);
  return module == modules_.end() ? nullptr : &module->second;
}

Module* Graph::module_of(const Node& node) {
  return const_cast<Module*>(static_cast<const Graph*>(this)->module_of(node));
}

std::optional<std::pair<std::string, std::string>> Graph::owner_of(
    const std::string& wanted) const {
  for (size_t dot = wanted.rfind('.');;
       dot = dot == 0 ? std::string::npos : wanted.rfind('.', dot - 1)) {
    const bool root = dot == std::string::npos;
    const std::string path = root ? "" : wanted.substr(0, dot);
    const std::string own = root ? wanted : wanted.substr(dot + 1);
    const auto module = modules_.find(path);
    if (module != modules_.end() && module->second.find(own)) return {{path, own}};
    if (root) return {};
  }
}

const Tensor* Graph::tensor(const std::string& wanted) const {
  const auto owner = owner_of(wanted);
  return owner ? modules_.at(owner->first).find(owner->second) : nullptr;
}

Tensor* Graph::tensor(const std::string& wanted) {
  return const_cast<Tensor*>(static_cast<const Graph*>(this)->tensor(wanted));
}

std::string Graph::module_needed_by(const Node& node) const {
  if (node.kind == NodeKind::call_module) return node.target;
  const auto owner = owner_of(node.target);
  return owner ? owner->first : "";
}

std::vector<std::string> Graph::module_order() const {
  std::vector<std::string> paths;
  std::set<std::string> seen;
  for (const NodeId id : order_) {
    const Node& node = this->node(id);
    if (node.kind != NodeKind::call_module && node.kind != NodeKind::get_attr) continue;
    const std::string path = module_needed_by(node);
    if (modules_.count(path) && seen.insert(path).second) paths.push_back(path);
  }
  return paths;
}

const Quantization& Graph::quantization_of(const Node& node) const {
  const Module* module = module_of(node);
  return module ? module->quantization : node.quantization;
}

void Graph::replace_uses(NodeId old_id, NodeId new_id) {
  for (const NodeId id : order_) {
    if (id == new_id) continue;
    for (Argument& argument : node(id).args) replace(argument, old_id, new_id);
    for (auto& [key, argument] : node(id).kwargs) replace(argument, old_id, new_id);
  }
}

void Graph::erase(NodeId id) {
  MASE_CHECK(users(id).empty(), "node '{}' is still used", node(id).name);
  order_.erase(std::find(order_.begin(), order_.end(), id));
  if (insertion_ == id) insertion_ = -1;
  const Node& gone = node(id);
  if (gone.kind != NodeKind::call_module && gone.kind != NodeKind::get_attr) return;
  const auto module = modules_.find(module_needed_by(gone));
  if (module == modules_.end()) return;
  const std::vector<std::string> needed = module_order();
  const bool read = std::any_of(order_.begin(), order_.end(), [&](NodeId other) {
    return node(other).kind == NodeKind::get_attr && node(other).target == gone.target;
  });
  if (std::find(needed.begin(), needed.end(), module->first) == needed.end()) {
    modules_.erase(module);
  } else if (module->second.op.empty() && !read) {  // its tensors go one by one
    const std::string name = owner_of(gone.target)->second;
    for (auto* table : {&module->second.parameters, &module->second.buffers})
      std::erase_if(*table, [&](const auto& entry) { return entry.first == name; });
  }
}

int64_t Graph::parameter_count(bool trainable_only) const {
  int64_t count = 0;
  for (const auto& [path, module] : modules_) {
    if (trainable_only && module.frozen) continue;
    for (const auto& [name, tensor] : module.parameters) count += tensor.numel();
  }
  return count;
}

std::string tensor_name(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

TensorTable state_dict(const Graph& graph) {
  TensorTable table;
  for (const std::string& path : graph.module_order()) {
    const Module& module = graph.modules().at(path);
    for (const TensorTable* tensors : {&module.parameters, &module.buffers})
      for (const auto& [name, tensor] : *tensors)
        table.emplace_back(tensor_name(path, name), tensor);
  }
  return table;
}

}  // namespace mase
