// SPDX-License-Identifier: Apache-2.0
#include "mase/search/measure/prefix_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "mase/base/text.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/value_type.h"
#include "mase/search/measure/figures.h"

namespace mase::search {
namespace {

// Programs of one piece, and prefixes whose scores are known; beyond that they are made again.
constexpr size_t most_programs = 4096;

// Of a parameter's name, "seq_blocks_2/config/weight_width": rounds weights, and nothing else.
bool rounds_weights(const std::string& name) {
  const std::string key = name.substr(name.rfind('/') + 1);
  return starts_with(key, "weight_") || starts_with(key, "bias_");
}

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
                           const Split& split, int64_t rows, int64_t batch_size, bool losses)
    : graph_(graph), space_(space), dataset_(dataset), batch_size_(batch_size), losses_(losses) {
  rows_ = first_rows(split, rows);
  rows_.x = rows_.samples();  // pieces of the network take floats
  rows_.bytes.reset();
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
  join_pieces();
  if (pieces_.size() > 1) last_layer_ = LastLayer::at(graph, pieces_.back().from, dataset);
  for (const size_t p : pieces_.back().parameters)
    if (!rounds_weights(space.space().parameters()[p].name)) data_parameters_.push_back(p);
}

// Results that are kept between pieces are to fit into memory: the largest are not kept.
void PrefixRunner::join_pieces() {
  constexpr int64_t budget = (int64_t{512} << 20) / int64_t{sizeof(float)};
  if (pieces_.size() == 1) return;
  const std::vector<Shape> shapes = infer_shapes(graph_, 1);
  const auto kept = [&](const Piece& piece) {
    return rows_.rows() * element_count(shapes[static_cast<size_t>(piece.output)]);
  };
  while (pieces_.size() > 1) {
    int64_t all = 0;
    size_t largest = 0;
    for (size_t i = 0; i + 1 < pieces_.size(); ++i) {
      all += kept(pieces_[i]);
      if (kept(pieces_[i]) > kept(pieces_[largest])) largest = i;
    }
    if (all <= budget) return;
    Piece& piece = pieces_[largest];
    Piece& next = pieces_[largest + 1];
    piece.to = next.to;
    piece.output = next.output;
    piece.parameters.insert(piece.parameters.end(), next.parameters.begin(), next.parameters.end());
    pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(largest) + 1);
  }
}

PrefixRunner::Key PrefixRunner::key_of(const std::vector<size_t>& parameters, const Point& point) {
  Key key;
  for (const size_t parameter : parameters)
    key.push_back(std::isnan(point[parameter]) ? -1 : point[parameter]);
  return key;
}

int64_t PrefixRunner::batch_of_rows() const {
  return rows_at_once(graph_, std::min(batch_size_, std::max<int64_t>(1, rows_.rows())));
}

Graph PrefixRunner::configured(const Point& point) const {
  Graph graph = graph_;
  const std::vector<PlannedNode> plan = space_.plan(graph, point);
  if (!plan.empty()) apply_quantize_plan(graph, plan, PassContext());
  return graph;
}

Program& PrefixRunner::program(Piece& piece, const Key& key, const Point& point, bool is_last) {
  const auto known = piece.programs.find(key);
  if (known != piece.programs.end()) return known->second;
  if (piece.programs.size() >= most_programs) piece.programs.clear();
  constexpr size_t budget = size_t{512} << 20;  // of the memory that programs run in
  if (program_bytes_ > budget) {
    for (Piece& one : pieces_) one.programs.clear();
    program_bytes_ = 0;
  }
  CompileOptions options;
  options.batch_size = batch_of_rows();
  if (is_last) options.loss = loss_for(dataset_);
  Program& made = piece.programs
                      .emplace(key, Program::compile(piece_of(configured(point), piece.from,
                                                              piece.to, piece.input, piece.output),
                                                     options))
                      .first->second;
  program_bytes_ += made.arena_bytes();
  return made;
}

int PrefixRunner::identity(Piece& piece, const Point& point) {
  const Key key = key_of(piece.parameters, point);
  const auto known = piece.identities.find(key);
  if (known != piece.identities.end()) return known->second;
  std::vector<size_t> others;
  for (const size_t p : piece.parameters)
    if (!rounds_weights(space_.space().parameters()[p].name)) others.push_back(p);
  const Graph graph = configured(point);
  std::vector<uint32_t> numbers;
  bool fixed = true;  // the numbers say it all
  for (size_t i = piece.from; i < piece.to; ++i) {
    const Module* module = graph.module_of(graph.node(graph.order()[i]));
    if (!module) continue;
    for (const auto& [operand, quantizer] : module->quantization.operands) {
      if (is_activation(operand)) continue;
      const auto values = rounded_values(*module, operand);
      fixed = fixed && values && (!values->empty() || !module->find(operand));
      numbers.push_back(static_cast<uint32_t>(values ? values->size() : 0));
      if (!values) continue;
      for (const float value : *values) numbers.push_back(std::bit_cast<uint32_t>(value));
    }
  }
  const auto fresh = static_cast<int>(piece.identities.size());
  const int found =
      fixed ? piece.contents.emplace(std::pair(key_of(others, point), std::move(numbers)), fresh)
                  .first->second
            : fresh;
  return piece.identities[key] = found;
}

// For a search in a random order, which comes back to what it had before.
void PrefixRunner::keep(Piece& piece, const Key& so_far) {
  constexpr size_t budget = size_t{64} << 20;
  const size_t bytes = piece.result.bytes();
  if (2 * bytes > budget) return;
  if ((piece.results.size() + 1) * bytes > budget) piece.results.clear();
  piece.results.emplace(so_far, piece.result);
}

// The results of pieces before this one, computed from the first on that has another configuration;
// what this one is fed with.
Tensor PrefixRunner::results_before(size_t end, const Point& point) {
  bool changed = false;
  Tensor input = rows_.x;
  Key so_far;  // of this piece and all before it
  for (size_t i = 0; i < end; ++i) {
    Piece& piece = pieces_[i];
    Key key = key_of(piece.parameters, point);
    so_far.insert(so_far.end(), key.begin(), key.end());
    changed = changed || !piece.known || piece.last != key;
    if (changed) {
      const auto kept = piece.results.find(so_far);
      if (kept != piece.results.end()) {
        piece.result = kept->second;
      } else {
        ++computed_;
        Split unlabelled;
        unlabelled.x = input;
        piece.result = predict_rows(program(piece, key, point, false), unlabelled);
        keep(piece, so_far);
      }
      piece.last = std::move(key);
      piece.known = true;
    }
    input = piece.result;
  }
  return input;
}

// The piece before the last layer is run block by block, and each block meets all configurations of
// the last layer while it is in the cache.
void PrefixRunner::run_last_layer(const Point& prefix, std::span<const LastLayer::Group> groups) {
  const size_t before = pieces_.size() - 2;
  Piece& piece = pieces_[before];
  constexpr size_t few = 4;  // then what was computed is kept, for those that follow
  size_t variants = 0;
  for (const LastLayer::Group& group : groups) variants += group.variants.size();
  if (variants < few) {
    const Tensor input = results_before(before + 1, prefix);
    const int64_t width = input.numel() / std::max<int64_t>(1, input.shape()[0]);
    last_layer_->score([&](int64_t first, int64_t) { return input.data<float>() + first * width; },
                       rows_.labels.values<int32_t>(), batch_of_rows(), losses_, groups);
    return;
  }
  const Tensor input = results_before(before, prefix);
  Program& feeding = program(piece, key_of(piece.parameters, prefix), prefix, false);
  ++computed_;
  std::vector<float> rows(static_cast<size_t>(element_count(feeding.output_shape(0))));
  Batch batch;
  batch.inputs = {input};
  last_layer_->score(
      [&](int64_t first, int64_t n) {
        batch.first_row = first;
        batch.size = n;
        feeding.forward(batch);
        feeding.read_output(0, rows.data());
        return rows.data();
      },
      rows_.labels.values<int32_t>(), batch_of_rows(), losses_, groups);
}

// Points that differ in the last piece alone.
void PrefixRunner::run_last(std::span<const Point> points, Score* scores) {
  Piece& piece = pieces_.back();
  std::map<Key, LastLayer::Group> groups;  // by what their data depend on
  for (size_t i = 0; i < points.size(); ++i) {
    ++computed_;
    const Key key = key_of(piece.parameters, points[i]);
    if (last_layer_) {
      auto known = variants_.find(key);
      if (known == variants_.end()) {
        if (variants_.size() >= most_programs && groups.empty()) variants_.clear();
        known = variants_.emplace(key, last_layer_->variant(configured(points[i]))).first;
      }
      if (known->second) {
        LastLayer::Group& group = groups[key_of(data_parameters_, points[i])];
        group.variants.push_back(&*known->second);
        group.scores.push_back(&scores[i]);
        continue;
      }
    }
    Split input = rows_;
    input.x = results_before(pieces_.size() - 1, points[i]);
    scores[i] = score_rows(program(piece, key, points[i], true), input, 0, input.rows());
  }
  std::vector<LastLayer::Group> all;
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  if (!all.empty()) run_last_layer(points.front(), all);
}

int64_t PrefixRunner::at_once() const {
  constexpr double most = 4096;
  double count = 1;
  for (const size_t p : pieces_.back().parameters)
    count *= space_.space().parameters()[p].distribution.count();
  return static_cast<int64_t>(std::min(count, most));
}

std::vector<Score> PrefixRunner::run(std::span<const Point> points) {
  std::vector<size_t> before;  // parameters of all pieces but the last
  for (size_t i = 0; i + 1 < pieces_.size(); ++i)
    before.insert(before.end(), pieces_[i].parameters.begin(), pieces_[i].parameters.end());
  std::vector<Score> scores;
  for (size_t first = 0, last = 0; first < points.size(); first = last) {
    const Key key = key_of(before, points[first]);
    for (last = first + 1; last < points.size() && key_of(before, points[last]) == key;) ++last;
    std::vector<int> prefix, ends;
    for (size_t i = 0; i + 1 < pieces_.size(); ++i)
      prefix.push_back(identity(pieces_[i], points[first]));
    if (scores_.size() >= most_programs) scores_.clear();
    std::map<int, Score>& known = scores_[prefix];
    std::vector<Point> fresh;
    std::map<int, size_t> places;  // among the fresh ones
    for (size_t i = first; i < last; ++i) {
      ends.push_back(identity(pieces_.back(), points[i]));
      if (known.count(ends.back()) || !places.emplace(ends.back(), fresh.size()).second) continue;
      fresh.push_back(points[i]);
    }
    std::vector<Score> made(fresh.size());
    if (!fresh.empty()) run_last(fresh, made.data());
    for (const auto& [end, place] : places) known[end] = made[place];
    for (const int end : ends) scores.push_back(known.at(end));
  }
  return scores;
}

}  // namespace mase::search
