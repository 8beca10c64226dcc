// SPDX-License-Identifier: Apache-2.0
#include "mase/search/prefix_runner.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "mase/base/text.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/value_type.h"
#include "mase/search/figures.h"

namespace mase::search {
namespace {

// Programs of one piece; beyond that they are compiled again.
constexpr size_t most_programs = 4096;

Argument moved(const Argument& argument, const std::map<NodeId, NodeId>& ids) {
  if (argument.is_node()) return Argument::node(ids.at(argument.id()));
  if (const auto* items = std::get_if<std::vector<Argument>>(&argument.data)) {
    std::vector<Argument> list;
    for (const Argument& item : *items) list.push_back(moved(item, ids));
    return Argument::list(std::move(list));
  }
  return argument;
}

// The only earlier node whose result nodes from this place on use; -1 if there are several, or if
// more than data flow through here.
NodeId waist(const Graph& graph, size_t place) {
  std::set<NodeId> before, used;
  const std::vector<NodeId>& order = graph.order();
  for (size_t i = 0; i < place; ++i) before.insert(order[i]);
  for (size_t i = place; i < order.size(); ++i) {
    if (graph.node(order[i]).kind == NodeKind::placeholder) return -1;
    for (const NodeId input : graph.inputs_of(order[i]))
      if (before.count(input)) used.insert(input);
  }
  if (used.size() != 1 || has_several_results(graph, graph.node(*used.begin()))) return -1;
  // A layer that is called on both sides has one set of parameters.
  std::set<std::string> targets;
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = graph.node(order[i]);
    if (node.kind != NodeKind::call_module) continue;
    if (i < place)
      targets.insert(node.target);
    else if (targets.count(node.target))
      return -1;
  }
  return *used.begin();
}

}  // namespace

Graph piece_of(const Graph& graph, size_t from, size_t to, NodeId input, NodeId output) {
  Graph piece;
  piece.name = graph.name;
  std::map<NodeId, NodeId> ids;
  if (input >= 0) {
    Shape sample = infer_shapes(graph, 1).at(static_cast<size_t>(input));
    sample.erase(sample.begin());
    ids[input] = piece.add_placeholder("x", std::move(sample),
                                       infer_elements(graph).at(static_cast<size_t>(input)));
  }
  for (size_t i = from; i < to; ++i) {
    Node node = graph.node(graph.order()[i]);
    if (node.kind == NodeKind::output) continue;
    const NodeId old = node.id;
    if (const Module* module = graph.module_of(node)) piece.modules()[node.target] = *module;
    for (Argument& argument : node.args) argument = moved(argument, ids);
    for (auto& [name, argument] : node.kwargs) argument = moved(argument, ids);
    ids[old] = piece.add_node(std::move(node));
  }
  std::vector<NodeId> results;
  if (output >= 0)
    results = {ids.at(output)};
  else
    for (const NodeId result : graph.outputs()) results.push_back(ids.at(result));
  piece.add_output(results);
  return piece;
}

PrefixRunner::PrefixRunner(const Graph& graph, const QuantizeSpace& space, const Dataset& dataset,
                           const Split& split, int64_t rows, int64_t batch_size)
    : graph_(graph), space_(space), dataset_(dataset), batch_size_(batch_size) {
  rows_ = first_rows(split, rows);
  const std::vector<NodeId>& order = graph.order();
  // Attributes that are read by name have no argument that could be cut.
  const bool plain = std::none_of(order.begin(), order.end(), [&](NodeId id) {
    return graph.node(id).kind == NodeKind::get_attr;
  });
  pieces_.emplace_back();
  for (size_t place = 0; place < order.size(); ++place) {
    const std::string prefix = graph.node(order[place]).name + "/";
    std::vector<size_t> own;
    for (size_t p = 0; p < space.space().dimensions(); ++p)
      if (starts_with(space.space().parameters()[p].name, prefix)) own.push_back(p);
    const NodeId input = own.empty() || !plain || place == 0 ? -1 : waist(graph, place);
    // A piece without arithmetic is not worth keeping: the placeholder alone.
    if (input >= 0 && graph.node(input).kind != NodeKind::placeholder) {
      pieces_.back().to = place;
      pieces_.back().output = input;
      pieces_.emplace_back();
      pieces_.back().from = place;
      pieces_.back().input = input;
    }
    pieces_.back().parameters.insert(pieces_.back().parameters.end(), own.begin(), own.end());
  }
  pieces_.back().to = order.size();
}

Program& PrefixRunner::program(Piece& piece, const std::vector<double>& key, const Point& point,
                               bool is_last) {
  const auto known = piece.programs.find(key);
  if (known != piece.programs.end()) return known->second;
  if (piece.programs.size() >= most_programs) piece.programs.clear();
  Graph graph = graph_;
  const std::vector<PlannedNode> plan = space_.plan(graph, point);
  if (!plan.empty()) apply_quantize_plan(graph, plan, PassContext());
  CompileOptions options;
  options.batch_size = std::min(batch_size_, std::max<int64_t>(1, rows_.rows()));
  if (is_last) options.loss = loss_for(dataset_);
  return piece.programs
      .emplace(key, Program::compile(
                        piece_of(graph, piece.from, piece.to, piece.input, piece.output), options))
      .first->second;
}

Score PrefixRunner::run(const Point& point) {
  bool changed = false;
  Split input = rows_;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    std::vector<double> key;
    for (const size_t parameter : piece.parameters)
      key.push_back(std::isnan(point[parameter]) ? -1 : point[parameter]);
    const bool is_last = i + 1 == pieces_.size();
    changed = changed || !piece.known || piece.last != key;
    if (is_last) {
      ++computed_;
      return score_rows(program(piece, key, point, true), input, 0, input.rows());
    }
    if (changed) {
      ++computed_;
      Split unlabelled;
      unlabelled.x = input.x;
      piece.result = predict_rows(program(piece, key, point, false), unlabelled);
      piece.last = std::move(key);
      piece.known = true;
    }
    input.x = piece.result;
  }
  return {};
}

}  // namespace mase::search
