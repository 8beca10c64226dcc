// SPDX-License-Identifier: Apache-2.0
// A graph as a JSON value and back, without loss; tensors are written by shape and dtype only,
// their values travel beside (see io/).
#include "mase/ir/serialize.h"

#include <algorithm>

#include "mase/base/text.h"
#include "mase/ir/graph.h"
#include "mase/ir/op.h"
#include "mase/ir/value_type.h"

namespace mase {
namespace {

// 2: elements of placeholders, constants, several results, methods. Before that, 1 was not written.
constexpr int64_t newest_version = 2;

Value argument_to_value(const Graph& graph, const Argument& argument) {
  if (argument.is_node()) return Dict{{"node", graph.node(argument.id()).name}};
  if (const Value* literal = std::get_if<Value>(&argument.data)) return Dict{{"literal", *literal}};
  List items;
  for (const Argument& item : std::get<std::vector<Argument>>(argument.data))
    items.push_back(argument_to_value(graph, item));
  return Dict{{"list", items}};
}

Argument argument_from_value(const Graph& graph, const Value& value) {
  const Dict& dict = value.as_dict("argument");
  if (const Value* name = dict.find("node")) {
    const Node* node = graph.find(name->as_string("node"));
    if (!node)
      throw Error(value.position(), "",
                  fmt::format("uses '{}' before it is defined", printable(name->as_string())));
    return Argument::node(node->id);
  }
  if (const Value* list = dict.find("list")) {
    std::vector<Argument> items;
    for (const Value& item : list->as_list("list"))
      items.push_back(argument_from_value(graph, item));
    return Argument::list(std::move(items));
  }
  return Argument::literal(value["literal"]);
}

Value table_to_value(const TensorTable& table) {
  Dict dict;
  for (const auto& [name, tensor] : table)
    dict.set(name,
             Dict{{"shape", Value::of(tensor.shape())}, {"dtype", dtype_name(tensor.dtype())}});
  return dict;
}

Tensor zeros(const std::string&, const Shape& shape, DType dtype) { return Tensor(shape, dtype); }

TensorTable table_from_value(const Value& value, const std::string& path,
                             const TensorSource& tensors) {
  constexpr int64_t most = int64_t{1} << 32;  // a graph file must not make us allocate at will
  TensorTable table;
  if (value.is_null()) return table;
  for (const auto& [name, entry] : value.as_dict("tensors")) {
    const auto dtype = dtype_from_name(entry["dtype"].as_string("dtype"));
    if (!dtype) throw Error(entry.position(), name, "unknown dtype");
    const Shape shape = entry["shape"].as_int_list("shape");
    if (element_count(shape) > most) throw Error(entry.position(), name, "the tensor is too large");
    table.emplace_back(name, tensors(tensor_name(path, name), shape, *dtype));
  }
  return table;
}

// The config alone does not say which operands are rounded: formats without keys need none.
void quantization_to_value(const Quantization& quantization, Dict& entry) {
  if (quantization.config.is_null()) {  // formats that exist during training only
    if (!quantization.operands.empty())
      entry.set("unfinished", quantization.operands.begin()->second->untyped);
    return;
  }
  entry.set("quantization", quantization.config);
  std::vector<std::string> operands;
  for (const auto& [operand, quantizer] : quantization.operands) operands.push_back(operand);
  entry.set("quantized_operands", Value::of(operands));
}

Quantization quantization_from_value(const Value& entry, const OpRecord& op,
                                     const std::string& path) {
  const Value& config = entry["quantization"];
  if (config.is_null()) return {};
  OperandRules rules = operand_rules(op);
  const std::vector<std::string> prefixes = rules.prefixes();
  std::vector<std::string> operands;
  if (!entry["quantized_operands"].is_null()) {
    operands = entry["quantized_operands"].as_string_list(path + ".quantized_operands");
    for (const std::string& operand : operands)
      if (!std::count(prefixes.begin(), prefixes.end(), operand))
        throw Error(entry["quantized_operands"].position(), path,
                    fmt::format("'{}' has no operand '{}'", op.name, printable(operand)));
  } else if (config.is_dict() &&
             std::none_of(config.as_dict().begin(), config.as_dict().end(), [&](const auto& item) {
               return std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& operand) {
                 return starts_with(item.first, operand + "_");
               });
             })) {
    operands = op.required_operands;  // files that did not say: all that such a format rounds
  }
  rules.required = operands;
  Problems problems;
  Quantization result = parse_quantization(config, rules, path, problems);
  problems.throw_if_any();
  return result;
}

NodeKind kind_from_name(const Value& value) {
  for (int i = 0; i <= static_cast<int>(NodeKind::output); ++i)
    if (value.as_string("kind") == node_kind_name(static_cast<NodeKind>(i)))
      return static_cast<NodeKind>(i);
  throw Error(value.position(), "kind",
              fmt::format("unknown node kind '{}'", printable(value.as_string())));
}

}  // namespace

Value graph_to_value(const Graph& graph) {
  List nodes;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    Dict entry{{"name", node.name}, {"kind", node_kind_name(node.kind)}, {"target", node.target}};
    if (!node.args.empty()) {
      List args;
      for (const Argument& argument : node.args) args.push_back(argument_to_value(graph, argument));
      entry.set("args", args);
    }
    if (!node.kwargs.empty()) {
      Dict kwargs;
      for (const auto& [key, argument] : node.kwargs)
        kwargs.set(key, argument_to_value(graph, argument));
      entry.set("kwargs", kwargs);
    }
    if (node.kind == NodeKind::placeholder) {
      entry.set("shape", Value::of(node.sample_shape));
      entry.set("element", dtype_name(node.element));
    }
    if (node.size >= 0) entry.set("size", node.size);
    quantization_to_value(node.quantization, entry);
    if (!node.meta.empty()) entry.set("meta", node.meta);
    nodes.push_back(std::move(entry));
  }
  Dict modules;
  for (const auto& [path, module] : graph.modules()) {
    Dict entry;
    if (!module.op.empty()) entry = {{"op", module.op}, {"attributes", module.attributes}};
    if (!module.parameters.empty()) entry.set("parameters", table_to_value(module.parameters));
    if (!module.buffers.empty()) entry.set("buffers", table_to_value(module.buffers));
    if (!module.masks.empty()) entry.set("masks", table_to_value(module.masks));
    quantization_to_value(module.quantization, entry);
    if (module.frozen) entry.set("frozen", true);
    modules.set(path, std::move(entry));
  }
  Dict out{
      {"name", graph.name}, {"version", newest_version}, {"nodes", nodes}, {"modules", modules}};
  if (!graph.meta.empty()) out.set("meta", graph.meta);
  return out;
}

Graph graph_from_value(const Value& value) { return graph_from_value(value, zeros); }

Graph graph_from_value(const Value& value, const TensorSource& tensors) {
  Graph graph;
  graph.name = value["name"].as_string("name");
  const int64_t version = value["version"].is_null() ? 1 : value["version"].as_int("version");
  if (version < 1 || version > newest_version)
    throw Error(value["version"].position(), "version",
                fmt::format("the graph has version {}; this program reads up to {}", version,
                            newest_version),
                "use a newer program");
  if (value["meta"].is_dict()) graph.meta = value["meta"].as_dict();
  for (const auto& [path, entry] : value["modules"].as_dict("modules")) {
    Module module;
    if (!entry["op"].is_null()) {
      const OpRecord& op = find_op(entry["op"].as_string("op"), path);
      module.op = op.name;
      module.attributes = validate(entry["attributes"], op.attributes, path);
      module.quantization = quantization_from_value(entry, op, path);
    }
    module.parameters = table_from_value(entry["parameters"], path, tensors);
    module.buffers = table_from_value(entry["buffers"], path, tensors);
    module.masks = table_from_value(entry["masks"], path, zeros);
    module.frozen = entry["frozen"].is_bool() && entry["frozen"].as_bool();
    graph.modules().emplace(path, std::move(module));
  }
  for (const Value& entry : value["nodes"].as_list("nodes")) {
    Node node;
    node.name = entry["name"].as_string("name");
    if (graph.find(node.name))
      throw Error(entry.position(), printable(node.name), "two nodes have this name");
    node.kind = kind_from_name(entry["kind"]);
    node.target = entry["target"].as_string("target");
    if (!entry["args"].is_null())
      for (const Value& argument : entry["args"].as_list("args"))
        node.args.push_back(argument_from_value(graph, argument));
    if (!entry["kwargs"].is_null())
      for (const auto& [key, argument] : entry["kwargs"].as_dict("kwargs"))
        node.kwargs.emplace_back(key, argument_from_value(graph, argument));
    if (!entry["shape"].is_null()) node.sample_shape = entry["shape"].as_int_list("shape");
    if (!entry["size"].is_null()) node.size = entry["size"].as_int("size");
    if (!entry["element"].is_null()) {
      const auto element = dtype_from_name(entry["element"].as_string("element"));
      if (!element) throw Error(entry["element"].position(), node.name, "unknown element type");
      node.element = *element;
    }
    if (!entry["quantization"].is_null())
      node.quantization =
          quantization_from_value(entry, find_op(node.target, node.name), node.name);
    if (entry["meta"].is_dict()) node.meta = entry["meta"].as_dict();
    // What follows binds calls: that of a module which is not there is the file's mistake, not
    // ours.
    if (node.kind == NodeKind::call_module && !graph.module_of(node))
      throw Error(entry.position(), printable(node.name),
                  fmt::format("there is no module '{}'", printable(node.target)));
    graph.add_node(std::move(node));
  }
  if (version == 1) declare_index_inputs(graph);  // it had one element type
  // Files have the sizes; who describes a graph may leave them to us.
  const bool sizes_left_out =
      std::any_of(graph.order().begin(), graph.order().end(),
                  [&](NodeId id) { return is_size(graph.node(id)) && graph.node(id).size < 0; });
  if (sizes_left_out) resolve_sizes(graph);
  verify(graph);
  return graph;
}

}  // namespace mase
