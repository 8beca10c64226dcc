// SPDX-License-Identifier: Apache-2.0
// The rules every graph keeps. Run after each pass and each load.
#include <algorithm>
#include <set>

#include "mase/ir/learned.h"
#include "mase/ir/typed_graph.h"

namespace mase {
namespace {

void verify_fit(const std::string& place, const std::string& operand, const Quantizer& quantizer,
                const Shape& shape) {
  if (const auto problem = misfit(quantizer, shape))
    throw Error(place, fmt::format("{} {}: {}", operand, quantizer.format, *problem),
                "give one number per group");
}

// Numbers of activations fit the shapes they have.
void verify_activations(const BoundGraph& bound) {
  const Graph& graph = bound.graph();
  const std::vector<Shape> shapes = bound.shapes(2);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Quantization& quantization = graph.quantization_of(node);
    if (!quantization.active()) continue;
    const BoundCall& call = bound.own_call(id);
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const std::string operand = input_operand(*call.op, i, call.module != nullptr);
      if (const Quantizer* quantizer = quantization.find(operand))
        verify_fit(node.name, operand, *quantizer, shapes[static_cast<size_t>(call.inputs[i])]);
    }
    if (const Quantizer* quantizer = quantization.find("data_out"))
      verify_fit(node.name, "data_out", *quantizer, shapes[static_cast<size_t>(id)]);
  }
}

std::vector<ParamSpec> wanted_tensors(const std::string& path, const Module& module) {
  if (module.op.empty()) return {};  // only holds what get_attr nodes read
  const OpRecord& op = find_op(module.op, path);
  std::vector<ParamSpec> specs =
      op.params ? op.params(module.attributes) : std::vector<ParamSpec>();
  for (const LearnedOperand& learned : learned_operands(module))
    specs.push_back({learned.parameter, learned.shape});
  return specs;
}

// `read`: the tensors that get_attr nodes read, by name.
void verify_module(const std::string& path, const Module& module,
                   const std::set<std::string>& read) {
  const std::vector<ParamSpec> specs = wanted_tensors(path, module);
  for (const ParamSpec& spec : specs) {
    const Tensor* tensor = module.find(spec.name);
    if (!tensor) throw Error(path, fmt::format("parameter '{}' is missing", spec.name));
    if (tensor->shape() != spec.shape)
      throw Error(path, fmt::format("parameter '{}' is {}, the layer wants {}", spec.name,
                                    shape_text(tensor->shape()), shape_text(spec.shape)));
  }
  const auto used = [&](const std::string& name) {
    if (read.count(tensor_name(path, name))) return true;
    return std::any_of(specs.begin(), specs.end(), [&](auto& spec) { return spec.name == name; });
  };
  for (const TensorTable* table : {&module.parameters, &module.buffers, &module.masks})
    for (const auto& [name, tensor] : *table)
      if (!used(name)) throw Error(path, fmt::format("nothing uses parameter '{}'", name));
  for (const auto& [operand, quantizer] : module.quantization.operands)
    if (const Tensor* tensor = module.find(operand))
      verify_fit(path, operand, *quantizer, tensor->shape());
  for (const auto& [name, mask] : module.masks)
    if (mask.shape() != module.find(name)->shape())
      throw Error(path, fmt::format("the mask of '{}' has another shape", name));
}

void verify_sizes(const Graph& graph) {
  const bool any = std::any_of(graph.order().begin(), graph.order().end(),
                               [&](NodeId id) { return is_size(graph.node(id)); });
  if (!any) return;
  Graph resolved = graph;
  resolve_sizes(resolved);
  for (const NodeId id : graph.order())
    if (graph.node(id).size != resolved.node(id).size)
      throw Error(graph.node(id).name, fmt::format("gives {}, but the size is {}",
                                                   graph.node(id).size, resolved.node(id).size));
}

// A node with several results has no value of its own: only getitem takes it.
void verify_kinds_of_inputs(const Graph& graph, const Node& node, const std::set<NodeId>& several) {
  if (node.kind == NodeKind::call_function && find_op(node.target, node.name).name == "getitem")
    return;
  for (const NodeId input : graph.inputs_of(node.id))
    if (node.kind == NodeKind::output && is_size(graph.node(input)))
      throw Error(node.name, fmt::format("'{}' is a size and no tensor", graph.node(input).name),
                  "return tensors");
  for (const NodeId input : graph.inputs_of(node.id))
    if (several.count(input))
      throw Error(node.name,
                  fmt::format("takes '{}', which has several results", graph.node(input).name),
                  "pick one with getitem");
}

}  // namespace

void verify(const Graph& graph) {
  std::set<std::string> names, called, read;
  std::set<NodeId> defined, several;
  int outputs = 0;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!names.insert(node.name).second)
      throw Error(node.name, "two nodes have this name", "names must be unique");
    if (outputs > 0) throw Error(node.name, "stands after the output");
    for (const NodeId input : graph.inputs_of(id))
      if (!defined.count(input))
        throw Error(node.name,
                    fmt::format("uses '{}' before it is defined",
                                input >= 0 && static_cast<size_t>(input) < graph.id_limit()
                                    ? graph.node(input).name
                                    : std::to_string(input)));
    verify_kinds_of_inputs(graph, node, several);
    if (node.kind == NodeKind::get_attr) {
      if (!graph.tensor(node.target))
        throw Error(node.name, fmt::format("reads '{}', which no module has", node.target));
      called.insert(graph.owner_of(node.target)->first);
      read.insert(node.target);
    }
    if (node.kind == NodeKind::call_module) {
      if (!graph.module_of(node))
        throw Error(node.name,
                    fmt::format("calls '{}', which is not in the module table", node.target));
      called.insert(node.target);
    }
    for (const auto& [operand, quantizer] : node.quantization.operands)
      if (quantizer->learned)
        throw Error(node.name,
                    fmt::format("{} of a function cannot learn its {}: only layers keep parameters",
                                operand, quantizer->learned->name));
    if (node.kind == NodeKind::output) ++outputs;
    defined.insert(id);
    if (has_several_results(graph, node)) several.insert(id);
  }
  if (outputs != 1)
    throw Error(graph.name, fmt::format("a graph has one output node, this has {}", outputs));
  for (const auto& [path, module] : graph.modules()) {
    if (!called.count(path)) throw Error(path, "no node calls this module");
    verify_module(path, module, read);
  }
  const BoundGraph bound(graph);
  verify_activations(bound);
  bound.elements();
  verify_sizes(graph);
}

}  // namespace mase
