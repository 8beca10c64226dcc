// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/idiom.h"

#include <algorithm>

#include "mase/base/text.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/op.h"

namespace mase::onnx {

IdiomGraph::IdiomGraph(Graph& graph) : graph_(graph), shapes_(infer_shapes(graph, 3)) {
  gone_.resize(graph.id_limit(), false);
  uses_.resize(graph.id_limit(), 0);
  for (const NodeId id : graph.order()) count_inputs(id, 1);
}

IdiomGraph::Reading IdiomGraph::read(NodeId id) const {
  const Node& node = graph_.node(id);
  Reading reading;
  if (node.kind != NodeKind::call_function && node.kind != NodeKind::call_module) return reading;
  if (has_several_results(graph_, node)) return reading;
  const BoundCall call = bind_call(graph_, node);
  reading.op = call.op->name;
  reading.inputs = call.inputs;
  reading.attributes = call.attributes;
  if (call.module && !call.module->parameters.empty()) reading.op.clear();
  return reading;
}

// Each user counts once, however often it takes a value.
void IdiomGraph::count_inputs(NodeId id, int change) {
  std::vector<NodeId> inputs = graph_.inputs_of(id);
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  for (const NodeId input : inputs) uses_[static_cast<size_t>(input)] += change;
}

NodeId IdiomGraph::added(NodeId id, Shape shape) {
  gone_.resize(graph_.id_limit(), false);
  uses_.resize(graph_.id_limit(), 0);
  shapes_.resize(graph_.id_limit());
  shapes_[static_cast<size_t>(id)] = std::move(shape);
  count_inputs(id, 1);
  return id;
}

const Tensor* IdiomGraph::constant(NodeId id) const {
  const Node& node = graph_.node(id);
  return node.kind == NodeKind::get_attr ? graph_.tensor(node.target) : nullptr;
}

std::optional<std::pair<NodeId, double>> IdiomGraph::with_number(NodeId id,
                                                                 const std::string& op) const {
  const Reading r = read(id);
  if (r.op != op || r.inputs.size() != 1) return {};
  for (const char* side : {"other", "input"}) {
    const bool turned = std::string(side) == "input";
    if (r.attributes[side].is_number() && !(turned && (op == "div" || op == "sub" || op == "pow")))
      return std::pair(r.inputs[0], r.attributes[side].as_double());
  }
  return {};
}

void IdiomGraph::collect(NodeId id, bool root, Product& product, int depth) const {
  constexpr int deepest = 6;  // more than any idiom has
  if ((!root && !is_sole(id)) || depth == deepest) return product.factors.push_back(id);
  const Reading r = read(id);
  if (const auto scaled = with_number(id, "mul")) {
    product.number *= scaled->second;
    return collect(scaled->first, false, product, depth + 1);
  }
  if (const auto divided = with_number(id, "div")) {
    product.number /= divided->second;
    return collect(divided->first, false, product, depth + 1);
  }
  if (const auto power = with_number(id, "pow"); power && power->second == 3)
    return product.factors.insert(product.factors.end(), 3, power->first), void();
  if (r.op == "square" || (with_number(id, "pow") && with_number(id, "pow")->second == 2))
    return product.factors.insert(product.factors.end(), 2, r.inputs[0]), void();
  if (r.op == "mul" && r.inputs.size() == 2) {
    collect(r.inputs[0], false, product, depth + 1);
    return collect(r.inputs[1], false, product, depth + 1);
  }
  product.factors.push_back(id);
}
IdiomGraph::Product IdiomGraph::product_of(NodeId id) const {
  Product product;
  collect(id, true, product, 0);
  return product;
}

std::optional<NodeId> IdiomGraph::squared(NodeId id) const {
  const Reading r = read(id);
  if (r.op == "square") return r.inputs[0];
  if (const auto power = with_number(id, "pow"); power && power->second == 2) return power->first;
  if (r.op == "mul" && r.inputs.size() == 2 && r.inputs[0] == r.inputs[1]) return r.inputs[0];
  return {};
}

std::pair<NodeId, double> IdiomGraph::unscaled(NodeId id) const {
  double factor = 1;
  for (;;) {
    if (!is_sole(id)) break;
    if (const auto times = with_number(id, "mul")) {
      factor *= times->second;
      id = times->first;
    } else if (const auto by = with_number(id, "div")) {
      factor /= by->second;
      id = by->first;
    } else {
      break;
    }
  }
  return {id, factor};
}

std::string IdiomGraph::unique_path(const std::string& base) const {
  std::string path = base;
  for (int number = 1; graph_.modules().count(path) || graph_.tensor(path); ++number)
    path = fmt::format("{}_{}", base, number);
  return path;
}

void IdiomGraph::replace(NodeId old_id, NodeId made) {
  graph_.append();
  added(made, shape(old_id));
  graph_.replace_uses(old_id, made);
  std::swap(uses_[static_cast<size_t>(made)], uses_[static_cast<size_t>(old_id)]);
  remove(old_id);
}

// With what only it needed.
void IdiomGraph::remove(NodeId id) {
  std::vector<NodeId> rest = {id};
  while (!rest.empty()) {
    const NodeId at = rest.back();
    rest.pop_back();
    const NodeKind kind = graph_.node(at).kind;
    if (kind == NodeKind::placeholder || kind == NodeKind::output) continue;
    if (uses_[static_cast<size_t>(at)] > 0 || gone_[static_cast<size_t>(at)]) continue;
    const std::vector<NodeId> inputs = graph_.inputs_of(at);
    count_inputs(at, -1);
    graph_.erase(at);
    gone_[static_cast<size_t>(at)] = true;
    rest.insert(rest.end(), inputs.begin(), inputs.end());
  }
}

}  // namespace mase::onnx
