// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/place_formats.h"

#include <algorithm>
#include <utility>

#include "mase/base/text.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/quantization.h"

namespace mase::onnx {
namespace {

using Formats = std::map<std::string, OperandFormat>;

bool has_operand(const OpRecord& op, const std::string& operand) {
  return std::count(op.operands.begin(), op.operands.end(), operand) > 0;
}

class Placement {
 public:
  explicit Placement(Conversion& conversion) : model_(conversion), graph_(conversion.graph) {}

  void run() {
    const std::vector<NodeId> order = graph_.order();
    for (const NodeId id : order) {
      if (!model_.roundings.count(id)) continue;
      const bool taken = model_.of_users.count(id) > 0;  // as the file says, else by what fits
      if (taken && into_consumers(id)) continue;
      if (!into_producer(id) && !taken) into_consumers(id);
    }
    for (const auto& [path, formats] : model_.formats)
      if (graph_.modules().count(path)) set(graph_.modules().at(path), path, formats);
    for (const auto& [id, formats] : model_.function_formats) set(graph_.node(id), formats);
  }

 private:
  // The formats of what a node calls, to be added to.
  Formats& formats_of(const Node& node) {
    return node.kind == NodeKind::call_module ? model_.formats[node.target]
                                              : model_.function_formats[node.id];
  }

  // One table has one format name.
  bool fits(const Node& node, const std::string& operand, const OperandFormat& format) {
    const Formats& known = formats_of(node);
    const auto same = known.find(operand);
    if (same != known.end()) return same->second == format;
    return std::all_of(known.begin(), known.end(),
                       [&](const auto& entry) { return entry.second.name == format.name; });
  }

  bool is_call(const Node& node) const {
    return node.kind == NodeKind::call_module || node.kind == NodeKind::call_function;
  }

  int calls(const std::string& path) const {
    return static_cast<int>(
        std::count_if(graph_.order().begin(), graph_.order().end(), [&](NodeId id) {
          return graph_.node(id).kind == NodeKind::call_module && graph_.node(id).target == path;
        }));
  }

  OperandFormat format_of(NodeId rounding) {
    return model_.formats.at(graph_.node(rounding).target).at("data_in");
  }

  void remove(NodeId rounding, NodeId replacement) {
    const std::string path = graph_.node(rounding).target;
    graph_.replace_uses(rounding, replacement);
    graph_.erase(rounding);
    model_.formats.erase(path);
    model_.roundings.erase(rounding);
  }

  bool into_producer(NodeId id) {
    const NodeId from = graph_.inputs_of(id).at(0);
    const Node& producer = graph_.node(from);
    const OpRecord* op = is_call(producer) ? op_of(graph_, producer) : nullptr;
    if (!op || !has_operand(*op, "data_out") || graph_.users(from).size() != 1) return false;
    if (producer.kind == NodeKind::call_module && calls(producer.target) != 1) return false;
    if (formats_of(producer).count("data_out") || !fits(producer, "data_out", format_of(id)))
      return false;
    formats_of(producer)["data_out"] = format_of(id);
    remove(id, from);
    return true;
  }

  // The operand of `user` that takes the rounding, if nothing but it comes through that operand.
  std::string operand_of(const Node& user, NodeId id) {
    const OpRecord* op = is_call(user) ? op_of(graph_, user) : nullptr;
    if (!op) return "";
    std::string operand;
    const std::vector<NodeId> inputs = graph_.inputs_of(user.id);
    const bool is_module = user.kind == NodeKind::call_module;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != id) continue;
      const std::string name = input_operand(*op, i, is_module);
      if (!operand.empty() && name != operand) return "";
      operand = name;
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] != id && input_operand(*op, i, is_module) == operand) return "";
    if (!has_operand(*op, operand)) return "";
    return is_module && calls(user.target) != 1 ? "" : operand;
  }

  bool into_consumers(NodeId id) {
    const OperandFormat format = format_of(id);
    std::vector<std::pair<NodeId, std::string>> places;
    for (const NodeId user : graph_.users(id)) {
      const std::string operand = operand_of(graph_.node(user), id);
      if (operand.empty() || !fits(graph_.node(user), operand, format)) return false;
      if (formats_of(graph_.node(user)).count(operand)) return false;
      places.emplace_back(user, operand);
    }
    if (places.empty()) return false;
    for (const auto& [user, operand] : places) formats_of(graph_.node(user))[operand] = format;
    remove(id, graph_.inputs_of(id).at(0));
    return true;
  }

  static Value table_of(Formats formats) {
    // Fixed point where all operands can be: its integers have a meaning in hardware.
    Formats fixed;
    for (const auto& [operand, format] : formats) {
      // The ends of wider words are no single-precision numbers: only what is computed gets there.
      constexpr int exact_width = 24;
      const bool computed = starts_with(operand, "data");
      if (computed && format.affine && format.affine->width > exact_width) continue;
      if (auto simple = fixed_format(format)) fixed.emplace(operand, std::move(*simple));
    }
    if (fixed.size() == formats.size()) formats = std::move(fixed);
    Dict table;
    for (const auto& [operand, format] : formats) add_keys(table, operand, format);
    return table;
  }

  Quantization parsed(const OpRecord& op, const Formats& formats, const std::string& path) const {
    Problems problems;
    OperandRules rules = operand_rules(op);
    rules.required.clear();
    Quantization quantization = parse_quantization(table_of(formats), rules, path, problems);
    problems.throw_if_any();
    return quantization;
  }

  void set(Module& module, const std::string& path, const Formats& formats) {
    Formats kept = formats;
    // A bias in another format than the weight: its numbers are rounded now.
    const auto weight = kept.find("weight"), bias = kept.find("bias");
    if (weight != kept.end() && bias != kept.end() && weight->second.name != bias->second.name) {
      Tensor* tensor = module.find("bias");
      if (tensor) *tensor = round_tensor(bias->second, *tensor, path);
      kept.erase(bias);
    }
    if (!kept.empty()) module.quantization = parsed(find_op(module.op, path), kept, path);
  }

  void set(Node& node, const Formats& formats) {
    if (!formats.empty())
      node.quantization = parsed(find_op(node.target, node.name), formats, node.name);
  }

  Conversion& model_;
  Graph& graph_;
};

}  // namespace

void place_formats(Conversion& conversion) { Placement(conversion).run(); }

}  // namespace mase::onnx
