// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/file/inline_functions.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "mase/base/text.h"

namespace mase::onnx {
namespace {

constexpr size_t deepest_call = 32, most_inlined = 100'000;

class Inliner {
 public:
  Inliner(const Model& model, const std::string& place, MemoryBudget& budget)
      : place_(place), budget_(budget) {
    for (const FunctionData& function : model.functions)
      functions_.emplace(std::tuple(function.domain, function.name, function.overload), &function);
  }

  std::vector<NodeData> all(const std::vector<NodeData>& nodes) {
    std::vector<NodeData> out;
    for (const NodeData& node : nodes) add(node, out, 0);
    return out;
  }

 private:
  const FunctionData* function_of(const NodeData& node) const {
    const auto found = functions_.find(std::tuple(node.domain, node.op, node.overload));
    return found == functions_.end() ? nullptr : found->second;
  }

  void add(const NodeData& node, std::vector<NodeData>& out, size_t depth) {
    const FunctionData* function = function_of(node);
    if (!function) {
      if (++count_ > most_inlined) fail(node, "the model's functions make too many nodes");
      size_t size = sizeof(NodeData) * 2;
      for (const std::string& name : node.inputs) size += name.size() + sizeof name;
      for (const Attribute& attribute : node.attributes)
        size += sizeof attribute + 8 * attribute.integers.size() + 4 * attribute.numbers.size();
      budget_.charge(size, place_);
      out.push_back(node);
      return;
    }
    if (depth == deepest_call) fail(node, "the model's functions call themselves");
    if (++calls_ > most_inlined) fail(node, "the model's functions are called too often");
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < function->inputs.size(); ++i)
      names[function->inputs[i]] = i < node.inputs.size() ? node.inputs[i] : "";
    for (size_t i = 0; i < function->outputs.size() && i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty()) names[function->outputs[i]] = node.outputs[i];
    const std::string prefix =
        fmt::format("{}#{}/", node.name.empty() ? node.op : node.name, calls_);
    const auto renamed = [&](const std::string& name) {
      if (name.empty()) return name;
      const auto known = names.find(name);
      return known != names.end() ? known->second : prefix + name;
    };
    for (const NodeData& inner : function->nodes) {
      NodeData copy = inner;
      for (std::string& name : copy.inputs) name = renamed(name);
      for (std::string& name : copy.outputs) name = renamed(name);
      copy.name = prefix + copy.name;
      if (copy.metadata.empty()) copy.metadata = node.metadata;
      copy.attributes = bound(inner.attributes, node, *function);
      add(copy, out, depth + 1);
    }
  }

  // Attributes that stand for the function's own get the call's value, or the function's default.
  std::vector<Attribute> bound(const std::vector<Attribute>& attributes, const NodeData& call,
                               const FunctionData& function) const {
    std::vector<Attribute> result;
    for (const Attribute& attribute : attributes) {
      if (attribute.reference.empty()) {
        result.push_back(attribute);
        continue;
      }
      const Attribute* given = call.find(attribute.reference);
      for (const Attribute& fallback : function.defaults)
        if (!given && fallback.name == attribute.reference) given = &fallback;
      if (!given) continue;  // left out in the call: left out inside
      result.push_back(*given);
      result.back().name = attribute.name;
    }
    return result;
  }

  [[noreturn]] void fail(const NodeData& node, const std::string& cause) const {
    throw Error(fmt::format("{}: node '{}' ({})", place_, printable(node.name), printable(node.op)),
                cause, "the file is damaged or hostile");
  }

  std::string place_;
  MemoryBudget& budget_;
  std::map<std::tuple<std::string, std::string, std::string>, const FunctionData*> functions_;
  size_t count_ = 0, calls_ = 0;
};

}  // namespace

Model inlined(const Model& model, const std::string& place, MemoryBudget& budget) {
  Model result = model;
  if (model.functions.empty()) return result;
  result.graph.nodes = Inliner(model, place, budget).all(model.graph.nodes);
  // The versions that only functions import.
  for (const FunctionData& function : model.functions)
    for (const OperatorSet& set : function.operator_sets)
      if (!result.operator_set(set.domain)) result.operator_sets.push_back(set);
  result.functions.clear();
  return result;
}

}  // namespace mase::onnx
