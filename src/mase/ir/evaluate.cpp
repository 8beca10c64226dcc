// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/evaluate.h"

#include <algorithm>

#include "mase/ir/learned.h"

namespace mase {
namespace {

Array quantized(const Array& array, const QuantizerPtr& quantizer) {
  if (!quantizer) return array;
  return Array::from(quantize(*quantizer, array.to_tensor()));
}

}  // namespace

std::string input_operand(const OpRecord& op, size_t index, bool is_module) {
  const auto has = [&](const char* operand) {
    return std::count(op.operands.begin(), op.operands.end(), operand) > 0;
  };
  if (index == 0 || is_module || !has("weight")) return "data_in";
  return index == 1 || !has("bias") ? "weight" : "bias";
}

BoundCall bind_call(const Graph& graph, const Node& node) {
  BoundCall call;
  if (node.kind == NodeKind::call_module) {
    call.module = graph.module_of(node);
    MASE_CHECK(call.module, "node '{}' calls no module", node.name);
    call.op = &find_op(call.module->op, node.name);
    call.attributes = call.module->attributes;
    call.inputs = graph.inputs_of(node.id);
    return call;
  }
  call.op = &find_op(node.target, node.name);
  if (call.op->function.empty())
    throw Error(node.name, fmt::format("'{}' is a module, not a function", node.target),
                "call it as a module");
  call.inputs = graph.inputs_of(node.id);
  // Literals are attributes: keyword ones by name, positional ones in schema order.
  Dict given;
  const std::vector<std::string> names = call.op->function_arguments.empty()
                                             ? call.op->attributes.names()
                                             : call.op->function_arguments;
  size_t next = 0;
  for (const Argument& argument : node.args) {
    const Value* literal = std::get_if<Value>(&argument.data);
    if (!literal) continue;
    if (next >= names.size())
      throw Error(node.name, fmt::format("too many arguments for '{}'", node.target));
    given.set(names[next++], *literal);
  }
  for (const auto& [key, argument] : node.kwargs)
    if (const Value* literal = std::get_if<Value>(&argument.data)) given.set(key, *literal);
  call.attributes = validate(Value(given), call.op->attributes, node.name);
  return call;
}

std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs,
                            const EvaluateOptions& options) {
  std::vector<Array> results(graph.id_limit());
  size_t next_input = 0;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::output) break;
    if (node.kind == NodeKind::placeholder) {
      MASE_CHECK(next_input < inputs.size(), "no input for '{}'", node.name);
      results[static_cast<size_t>(id)] = inputs[next_input++];
    } else {
      const BoundCall bound = bind_call(graph, node);
      static const Quantization none;
      const Quantization& quantization = options.quantized ? graph.quantization_of(node) : none;
      const auto quantizer = [&](const std::string& operand) {
        return current_quantizer(quantization, bound.module, operand);
      };
      std::vector<Array> arguments;
      for (size_t i = 0; i < bound.inputs.size(); ++i)
        arguments.push_back(
            quantized(results[static_cast<size_t>(bound.inputs[i])],
                      quantizer(input_operand(*bound.op, i, bound.module != nullptr))));
      std::map<std::string, Array> params;
      if (bound.module) {
        for (const auto& [name, tensor] : bound.module->parameters)
          params[name] = quantized(Array::from(tensor), quantizer(name));
        for (const auto& [name, tensor] : bound.module->buffers) params[name] = Array::from(tensor);
      }
      OpCall call{
          bound.attributes, {}, {}, options.training, options.seed + static_cast<uint64_t>(id)};
      for (const Array& argument : arguments) call.inputs.push_back(&argument);
      for (const auto& [name, array] : params) call.params[name] = &array;
      results[static_cast<size_t>(id)] = quantized(bound.op->eval(call), quantizer("data_out"));
    }
    if (options.observe) options.observe(node, results[static_cast<size_t>(id)]);
  }
  std::vector<Array> outputs;
  for (const NodeId id : graph.outputs()) outputs.push_back(results[static_cast<size_t>(id)]);
  return outputs;
}

}  // namespace mase
