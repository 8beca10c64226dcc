// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/evaluate.h"

#include <algorithm>

#include "mase/ir/learned.h"
#include "mase/ir/typed_graph.h"

namespace mase {
namespace {

Array quantized(const Array& array, const QuantizerPtr& quantizer) {
  if (!quantizer) return array;
  return Array::from(quantize(*quantizer, array.to_tensor()));
}

// A literal, or a size, which is known as one.
std::optional<Value> literal_of(const Graph& graph, const Argument& argument) {
  if (const Value* literal = std::get_if<Value>(&argument.data)) return *literal;
  if (!argument.is_node() || !is_size(graph.node(argument.id()))) return {};
  const Node& size = graph.node(argument.id());
  if (size.size < 0) throw Error(size.name, "the size is not resolved", "call resolve_sizes");
  return Value(size.size);
}

// Literals are attributes: keyword ones by name, positional ones in schema order.
Dict given_attributes(const Graph& graph, const Node& node, const OpRecord& op) {
  Dict given;
  const std::vector<std::string> names =
      op.function_arguments.empty() ? op.attributes.names() : op.function_arguments;
  // Methods take sizes and orders one by one: x.view(-1, 10).
  const Field* first = names.empty() ? nullptr : op.attributes.find(names[0]);
  const bool listed = node.kind == NodeKind::call_method && first && first->type == FieldType::list;
  const auto refuse_batch = [&](const Argument& argument, const Value& literal) {
    if (argument.is_node() && literal == Value(0))
      throw Error(node.name, "computes with the size of the batch", "only shapes may have it");
  };
  size_t next = 0;
  for (const Argument& argument : node.args) {
    const auto literal = literal_of(graph, argument);
    if (!literal) continue;
    if (listed && literal->is_int() && next <= 1) {
      given[names[0]].list().push_back(*literal);
      next = 1;
      continue;
    }
    refuse_batch(argument, *literal);
    if (next >= names.size())
      throw Error(node.name, fmt::format("too many arguments for '{}'", node.target));
    given.set(names[next++], *literal);
  }
  for (const auto& [key, argument] : node.kwargs)
    if (const auto literal = literal_of(graph, argument)) {
      refuse_batch(argument, *literal);
      given.set(key, *literal);
    }
  return given;
}

}  // namespace

std::string input_operand(const OpRecord& op, size_t index, bool is_module) {
  const auto has = [&](const char* operand) {
    return std::count(op.operands.begin(), op.operands.end(), operand) > 0;
  };
  // What is added to scores, such as a mask, is no operand.
  if (std::count(op.real_inputs.begin(), op.real_inputs.end(), index)) return "";
  if (index == 0 || is_module || !has("weight")) return "data_in";
  return index == 1 || !has("bias") ? "weight" : "bias";
}

BoundCall bind_call(const Graph& graph, const Node& node) {
  BoundCall call;
  call.caller = node.id;
  if (node.kind == NodeKind::call_module) {
    call.module = graph.module_of(node);
    MASE_CHECK(call.module, "node '{}' calls no module", node.name);
    call.op = &find_op(call.module->op, node.name);
    call.attributes = call.module->attributes;
    call.inputs = graph.inputs_of(node.id);
    for (const auto& [key, argument] : node.kwargs) {  // need_weights = False
      const Value* literal = std::get_if<Value>(&argument.data);
      if (!literal) continue;
      if (!call.op->attributes.find(key))
        throw Error(node.name, fmt::format("{} takes no argument '{}'", call.op->class_name, key));
      call.attributes[key] = *literal;
    }
    return call;
  }
  call.op = &find_op(node.target, node.name);
  if (call.op->function.empty() && node.kind == NodeKind::call_function)
    throw Error(node.name, fmt::format("'{}' is a module, not a function", node.target),
                "call it as a module");
  for (const NodeId input : graph.inputs_of(node.id))
    if (!is_size(graph.node(input))) call.inputs.push_back(input);
  call.attributes =
      validate(Value(given_attributes(graph, node, *call.op)), call.op->attributes, node.name);
  return call;
}

bool has_several_results(const Graph& graph, const Node& node) {
  if (node.kind != NodeKind::call_module && node.kind != NodeKind::call_function &&
      node.kind != NodeKind::call_method)
    return false;
  const Module* module = graph.module_of(node);
  const OpRecord& op = find_op(module ? module->op : node.target, node.name);
  if (!op.results) return false;
  return !op.results->several || gives_several_results(bind_call(graph, node));
}

bool gives_several_results(const BoundCall& call) {
  if (!call.op->results) return false;
  return !call.op->results->several || call.op->results->several(call.attributes);
}

BoundCall one_result(const BoundCall& several, const Value& index, const std::string& node,
                     const std::string& source) {
  if (!index.is_int())
    throw Error(node, fmt::format("'{}' has several results", source), "pick one by its number");
  BoundCall call = several;
  call.attributes["result"] = index.as_int();
  return call;
}

bool has_value(const Graph& graph, const Node& node) {
  return node.kind != NodeKind::output && !is_size(node) && !has_several_results(graph, node);
}

BoundCall bind_value(const Graph& graph, const Node& node) {
  BoundCall call = bind_call(graph, node);
  if (call.op->name != "getitem" || call.inputs.size() != 1) return call;
  const Node& source = graph.node(call.inputs[0]);
  if (!has_several_results(graph, source)) return call;
  return one_result(bind_call(graph, source), call.attributes["index"], node.name, source.name);
}

bool gives_first_result(const BoundCall& call) {
  if (!call.op->results || call.op->operands.empty()) return true;
  const int64_t result = call.attributes["result"].as_int();
  return result == 0 || result == -call.op->results->count(call.attributes, {});
}

std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs,
                            const EvaluateOptions& options) {
  const BoundGraph calls(graph);
  std::vector<Array> results(graph.id_limit());
  size_t next_input = 0;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::output) break;
    if (!calls.has_value(id)) continue;
    if (node.kind == NodeKind::get_attr) {
      results[static_cast<size_t>(id)] = Array::from(*graph.tensor(node.target));
    } else if (node.kind == NodeKind::placeholder) {
      MASE_CHECK(next_input < inputs.size(), "no input for '{}'", node.name);
      results[static_cast<size_t>(id)] = inputs[next_input++];
    } else {
      const BoundCall& bound = calls.call(id);
      static const Quantization none;
      const Quantization& quantization =
          options.quantized ? graph.quantization_of(graph.node(bound.caller)) : none;
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
      call.round = [&](Array value, const std::string& operand) {
        return quantized(value, quantizer(operand));
      };
      for (const Array& argument : arguments) call.inputs.push_back(&argument);
      for (const auto& [name, array] : params) call.params[name] = &array;
      Array& result = results[static_cast<size_t>(id)];
      result = bound.op->eval(call);
      if (gives_first_result(bound)) result = quantized(result, quantizer("data_out"));
    }
    if (options.observe) options.observe(node, results[static_cast<size_t>(id)]);
  }
  std::vector<Array> outputs;
  for (const NodeId id : graph.outputs()) outputs.push_back(results[static_cast<size_t>(id)]);
  return outputs;
}

}  // namespace mase
