// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/layer_text.h"

#include "mase/base/text.h"
#include "mase/formats/fixed.h"

namespace mase {
namespace {

// Formats are open, so the suffix is asked of the registry and not decided here.
const FormatRecord* format_record(const Quantization& quantization) {
  if (!quantization.active() && quantization.config.is_null()) return nullptr;
  const std::string name =
      quantization.config["name"].is_string() ? quantization.config["name"].as_string() : "";
  return Registry<FormatRecord>::instance().find(name.empty() ? quantization.format() : name);
}

std::string class_of(const OpRecord& op, const Quantization& quantization) {
  const FormatRecord* format = format_record(quantization);
  return op.class_name + (format ? format->class_suffix : "");
}

}  // namespace

const OpRecord* op_of(const Graph& graph, const Node& node) {
  const Module* module = graph.module_of(node);
  if (module) return Registry<OpRecord>::instance().find(module->op);
  if (node.kind != NodeKind::call_function && node.kind != NodeKind::call_method) return nullptr;
  return Registry<OpRecord>::instance().find(node.target);
}

std::string mase_type(const Graph& graph, const Node& node) {
  switch (node.kind) {
    case NodeKind::placeholder:
      return "placeholder";
    case NodeKind::output:
      return "output";
    case NodeKind::get_attr:
      return "get_attr";
    case NodeKind::call_method:
      return "implicit_func";
    case NodeKind::call_function:
    case NodeKind::call_module:
      break;
  }
  const OpRecord* op = op_of(graph, node);
  return op ? op->mase_type : "implicit_func";
}

std::string mase_op(const Graph& graph, const Node& node) {
  if (node.kind == NodeKind::placeholder) return "placeholder";
  if (node.kind == NodeKind::output) return "output";
  if (node.kind == NodeKind::get_attr) return "constant";
  const OpRecord* op = op_of(graph, node);
  return op ? op->name : node.target;
}

std::string class_text(const Graph& graph, const Node& node) {
  const OpRecord* op = op_of(graph, node);
  if (!op) return node.target;
  if (const Module* module = graph.module_of(node)) return class_of(*op, module->quantization);
  const FormatRecord* format = format_record(node.quantization);
  return format ? op->name + "_" + format->name : op->name;
}

std::string module_text(const Module& module) {
  const OpRecord& op = find_op(module.op);
  return fmt::format("{}({})", class_of(op, module.quantization),
                     op.repr ? op.repr(module.attributes) : "");
}

std::string layer_text(const Graph& graph, const Node& node) {
  const Module* module = graph.module_of(node);
  return module ? module_text(*module) : class_text(graph, node);
}

std::string input_name(size_t index) { return fmt::format("data_in_{}", index); }

std::string operand_text(const Quantizer* quantizer) {
  if (!quantizer) return "float32";
  std::string text = quantizer->format;
  const Fixed* fixed = quantizer->type ? quantizer->type->as<Fixed>() : nullptr;
  if (fixed && group_count(*fixed) > 1)
    text += " " + numbers_text(*fixed);
  else if (!quantizer->precision.empty())
    text += fmt::format(" {}", fmt::join(quantizer->precision, "/"));
  if (quantizer->learned) text += fmt::format(" (learned {})", quantizer->learned->name);
  return text;
}

std::string format_text(const Quantization& quantization) {
  std::vector<std::string> parts;
  if (quantization.bypass) parts.emplace_back("bypassed");
  const auto add = [&](const std::string& operand) {
    if (const Quantizer* quantizer = quantization.find(operand))
      parts.push_back(fmt::format("{} {}", operand, operand_text(quantizer)));
  };
  const std::vector<std::string> first = {"data_in", "weight", "bias"};
  for (const std::string& operand : first) add(operand);
  for (const auto& [operand, quantizer] : quantization.operands)
    if (!std::count(first.begin(), first.end(), operand) && operand != "data_out") add(operand);
  add("data_out");
  for (const auto& [operand, quantizer] : quantization.backward)
    parts.push_back(fmt::format("backward {} {}", operand, operand_text(quantizer.get())));
  return join(parts, ", ");
}

}  // namespace mase
