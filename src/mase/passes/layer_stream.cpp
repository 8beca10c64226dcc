// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/layer_stream.h"

#include <algorithm>
#include <optional>
#include <set>

#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/value_type.h"
#include "mase/passes/observe.h"

namespace mase {
namespace {

constexpr int64_t most_rows_in_piece = 256;
constexpr double most_values = 1 << 28;  // a gigabyte

// What a placeholder can stand for: one float tensor, sample by sample.
bool can_be_held(const Graph& graph, const std::vector<std::vector<ValueType>>& types, NodeId id) {
  const std::vector<ValueType>& type = types[static_cast<size_t>(id)];
  return has_value(graph, graph.node(id)) && graph.node(id).kind != NodeKind::placeholder &&
         type.size() == 1 && type[0].element == DType::f32 && type[0].is_sample_by_sample();
}

// Part of a graph as a graph of its own; what is held comes in as a placeholder.
class Piece {
 public:
  Piece(const Graph& whole, const std::map<NodeId, Tensor>& held, const std::vector<Tensor>& rows)
      : whole_(whole), held_(held), rows_(rows), given_(whole.placeholders()) {
    graph_.name = whole.name;
  }

  // Everything these need that is not held, in the order of the graph up to `end`.
  void take(const std::set<NodeId>& wanted, size_t end) {
    std::set<NodeId> needed = wanted;
    for (size_t i = end; i-- > 0;) {
      const NodeId id = whole_.order()[i];
      if (!needed.count(id) || held_.count(id)) continue;
      for (const NodeId input : whole_.inputs_of(id)) needed.insert(input);
    }
    for (size_t i = 0; i < end; ++i)
      if (const NodeId id = whole_.order()[i]; needed.count(id)) add(id);
    std::vector<NodeId> outputs;
    for (const NodeId id : wanted) outputs.push_back(places_.at(id));
    graph_.add_output(outputs);
  }

  std::map<NodeId, Tensor> run(const std::set<NodeId>& wanted, int threads) const {
    std::map<NodeId, Tensor> results;
    std::map<NodeId, int64_t> filled;
    std::map<NodeId, NodeId> owners;  // by place; held values are handed on as they are
    std::vector<NodeId> computed;
    for (const NodeId id : wanted) {
      const NodeId place = places_.at(id);
      if (graph_.node(place).kind == NodeKind::placeholder) {
        const std::vector<NodeId> all = graph_.placeholders();
        const auto at = std::find(all.begin(), all.end(), place) - all.begin();
        results[id] = inputs_[static_cast<size_t>(at)].to(DType::f32);
        continue;
      }
      owners[place] = id;
      computed.push_back(place);
    }
    if (computed.empty()) return results;
    const int64_t rows = inputs_.at(0).dim(0);
    observe_nodes(
        graph_, inputs_, computed,
        [&](NodeId place, const Tensor& some) {
          const NodeId id = owners.at(place);
          Tensor& all = results[id];
          if (all.shape().empty() || filled[id] == 0) {
            Shape shape = some.shape();
            shape[0] = rows;
            all = Tensor(shape);
          }
          std::copy_n(some.data<float>(), some.numel(), all.mutable_data<float>() + filled[id]);
          filled[id] += some.numel();
        },
        most_rows_in_piece, threads);
    return results;
  }

 private:
  void add(NodeId id) {
    const Node& node = whole_.node(id);
    const auto held = held_.find(id);
    if (node.kind == NodeKind::placeholder || held != held_.end()) {
      if (held != held_.end()) {
        const Tensor& value = held->second;
        inputs_.push_back(value);
        places_[id] = graph_.add_placeholder(node.name,
                                             Shape(value.shape().begin() + 1, value.shape().end()));
      } else {
        const auto at = std::find(given_.begin(), given_.end(), id) - given_.begin();
        inputs_.push_back(rows_.at(static_cast<size_t>(at)));
        places_[id] = graph_.add_placeholder(node.name, node.sample_shape, node.element);
      }
      return;
    }
    Node copy = node;
    for (Argument& argument : copy.args) move(argument);
    for (auto& [key, argument] : copy.kwargs) move(argument);
    if (node.kind == NodeKind::call_module) {
      graph_.modules()[node.target] = *whole_.module_of(node);
    } else if (node.kind == NodeKind::get_attr) {
      const std::string path = whole_.owner_of(node.target)->first;
      graph_.modules()[path] = whole_.modules().at(path);
    }
    places_[id] = graph_.add_node(std::move(copy));
  }

  void move(Argument& argument) const {
    if (argument.is_node())
      argument = Argument::node(places_.at(argument.id()));
    else if (auto* list = std::get_if<std::vector<Argument>>(&argument.data))
      for (Argument& item : *list) move(item);
  }

  const Graph& whole_;
  const std::map<NodeId, Tensor>& held_;
  const std::vector<Tensor>& rows_;
  std::vector<NodeId> given_;
  Graph graph_;
  std::vector<Tensor> inputs_;
  std::map<NodeId, NodeId> places_;
};

}  // namespace

const Tensor* LayerStream::result(const Graph& graph, NodeId node) {
  const std::vector<NodeId>& order = graph.order();
  const auto index = [&](NodeId id) {
    return static_cast<size_t>(std::find(order.begin(), order.end(), id) - order.begin());
  };
  const size_t place = last_ < 0 ? 0 : index(last_) + 1;
  if (graph.node(node).kind != NodeKind::placeholder &&
      !can_be_held(graph, infer_types(graph), node))
    return nullptr;
  if (!held_.count(node) || index(node) >= place)
    if (!advance(graph, std::max(place, index(node) + 1), node)) return nullptr;
  return &held_.at(node);
}

bool LayerStream::advance(const Graph& graph, size_t end, NodeId wanted) {
  const std::vector<NodeId>& order = graph.order();
  const std::vector<std::vector<ValueType>> types = infer_types(graph);
  // What nodes behind take, and of values that cannot be held what they are made of.
  std::set<NodeId> behind;
  for (size_t i = end; i < order.size(); ++i)
    for (const NodeId input : graph.inputs_of(order[i])) behind.insert(input);
  std::set<NodeId> keep = {wanted};
  for (size_t i = end; i-- > 0;) {
    const NodeId id = order[i];
    if (!behind.count(id)) continue;
    if (can_be_held(graph, types, id))
      keep.insert(id);
    else if (graph.node(id).kind != NodeKind::placeholder)
      for (const NodeId input : graph.inputs_of(id)) behind.insert(input);
  }
  double values = 0;
  for (const NodeId id : keep)
    if (graph.node(id).kind != NodeKind::placeholder)
      values += static_cast<double>(element_count(types[static_cast<size_t>(id)][0].at(rows())));
  if (values > most_values) return false;
  Piece piece(graph, held_, rows_);
  piece.take(keep, end);
  held_ = piece.run(keep, threads_);
  last_ = order[end - 1];
  return true;
}

}  // namespace mase
