// SPDX-License-Identifier: Apache-2.0
//   softmax(q k^T * scale + mask) v   =>   scaled_dot_product_attention
//
// A query from which a mask that is computed hides all keys gives zeros then, as attention does in
// PyTorch and onnxruntime, where softmax alone gives NaN. PyTorch's exporter says so itself:
//
//   s = softmax(..), where(s != s, 0, s) v
#include <algorithm>
#include <cmath>

#include "mase/base/text.h"
#include "mase/io/onnx/read/idiom.h"

namespace mase::onnx::attention_idiom {
namespace {

// Zeros on and below the diagonal, next to minus infinity above it.
bool is_causal(const Tensor& mask, const Shape& scores) {
  const int64_t length = scores[scores.size() - 2], keys = scores.back();
  if (length != keys || length < 2 || mask.numel() != length * keys) return false;
  for (int64_t i = 0; i < length; ++i)
    for (int64_t k = 0; k < keys; ++k) {
      const double value = mask.item(i * keys + k);
      if (k <= i ? value != 0 : value > -1e30) return false;
    }
  return true;
}

// [.., E, S] as [.., S, E]: one permutation where it was the result of one.
NodeId turned_back(IdiomGraph& graph, NodeId id, int64_t rank) {
  const IdiomGraph::Reading r = graph.read(id);
  NodeId from = id;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  if (r.op == "permute") {
    order = r.attributes["dims"].as_int_list("dims");
    for (int64_t& dim : order)
      if (dim < 0) dim += rank;
    from = r.inputs[0];
  } else if (r.op == "transpose") {
    const auto dim = [&](const char* name) {
      const int64_t given = r.attributes[name].as_int();
      return static_cast<size_t>(given < 0 ? given + rank : given);
    };
    std::swap(order[dim("dim0")], order[dim("dim1")]);
    from = r.inputs[0];
  }
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  if (std::is_sorted(order.begin(), order.end())) return from;
  Shape back = graph.shape(id);
  std::swap(back[back.size() - 1], back[back.size() - 2]);
  return graph.added(graph.graph().call_function("permute", {Argument::node(from)},
                                                 {{"dims", Argument::literal(Value::of(order))}}),
                     back);
}

// The softmax behind where(s != s, 0, s).
std::optional<NodeId> guarded(const IdiomGraph& graph, NodeId id) {
  const IdiomGraph::Reading chosen = graph.read(id);
  if (chosen.op != "where" || chosen.inputs.size() != 3) return {};
  const IdiomGraph::Reading test = graph.read(chosen.inputs[0]);
  const Tensor* zero = graph.constant(chosen.inputs[1]);
  const NodeId shares = chosen.inputs[2];
  if (test.op != "ne" || test.inputs != std::vector<NodeId>{shares, shares} || !zero ||
      zero->numel() != 1 || zero->item() != 0)
    return {};
  return shares;
}

// Whether a row of a mask is minus infinity throughout.
bool hides_all_keys(const Tensor& mask) {
  const int64_t keys = mask.shape().empty() ? 1 : mask.shape().back();
  for (int64_t row = 0; keys > 0 && row < mask.numel(); row += keys) {
    int64_t hidden = 0;
    while (hidden < keys && mask.item(row + hidden) == -INFINITY) ++hidden;
    if (hidden == keys) return true;
  }
  return false;
}

bool attention(IdiomGraph& graph, NodeId id) {
  const IdiomGraph::Reading product = graph.read(id);
  if (product.inputs.size() != 2 || !graph.is_sole(product.inputs[0])) return false;
  const std::optional<NodeId> inside = guarded(graph, product.inputs[0]);
  const IdiomGraph::Reading softmax = graph.read(inside.value_or(product.inputs[0]));
  const NodeId values = product.inputs[1];
  if (softmax.op != "softmax" || !softmax.attributes["dim"].is_int()) return false;
  const Shape scores = graph.shape(product.inputs[0]);
  const auto rank = static_cast<int64_t>(scores.size());
  const int64_t dim = softmax.attributes["dim"].as_int();
  if ((dim < 0 ? dim + rank : dim) != rank - 1 || rank < 3) return false;
  NodeId at = softmax.inputs[0];
  double scale = 1;
  std::optional<NodeId> mask;
  const auto scores_of = [&](NodeId node) -> std::optional<IdiomGraph::Reading> {
    auto [inner, factor] = graph.unscaled(node);
    const IdiomGraph::Reading r = graph.read(inner);
    if ((r.op != "matmul" && r.op != "bmm") || r.inputs.size() != 2 || !graph.is_sole(inner))
      return {};
    scale = factor;
    return r;
  };
  auto found = scores_of(at);
  std::optional<Tensor> hidden;  // a mask that chooses between scores and minus infinity
  if (const IdiomGraph::Reading chosen = graph.read(at);
      !found && chosen.op == "where" && graph.is_sole(at)) {
    const bool fills = graph.constant(chosen.inputs[1]) != nullptr;  // as masked_fill does
    const Tensor *choice = graph.constant(chosen.inputs[0]),
                 *value = graph.constant(chosen.inputs[fills ? 1 : 2]);
    if (!choice || !value || value->numel() != 1 || value->item() > -1e30) return false;
    found = scores_of(chosen.inputs[fills ? 2 : 1]);
    if (!found) return false;
    hidden.emplace(choice->shape());
    for (int64_t i = 0; i < choice->numel(); ++i)
      hidden->mutable_data<float>()[i] =
          (choice->item(i) != 0) != fills ? 0.0f : static_cast<float>(value->item());
  }
  if (!found) {
    const IdiomGraph::Reading sum = graph.read(at);
    if (sum.op != "add" || sum.inputs.size() != 2 || !graph.is_sole(at)) return false;
    for (size_t i = 0; i < 2 && !found; ++i) {
      found = scores_of(sum.inputs[i]);
      if (found) mask = sum.inputs[1 - i];
    }
  }
  if (!found) return false;
  auto [queries, q_scale] = graph.unscaled(found->inputs[0]);
  auto [turned, k_scale] = graph.unscaled(found->inputs[1]);
  scale *= q_scale * k_scale;
  const Shape q = graph.shape(queries), kt = graph.shape(turned), v = graph.shape(values);
  if (static_cast<int64_t>(q.size()) != rank || static_cast<int64_t>(kt.size()) != rank ||
      static_cast<int64_t>(v.size()) != rank)
    return false;
  for (int64_t i = 0; i + 2 < rank; ++i) {
    const auto d = static_cast<size_t>(i);
    const bool shares = i + 3 == rank && rank > 3 && kt[d] > 0 && q[d] % kt[d] == 0;
    if (kt[d] != v[d] || (q[d] != kt[d] && !shares)) return false;
  }
  if (mask && graph.graph().node(*mask).kind == NodeKind::get_attr &&
      graph.graph().tensor(graph.graph().node(*mask).target)->dtype() != DType::f32)
    return false;
  const Tensor* fixed = hidden ? &*hidden : mask ? graph.constant(*mask) : nullptr;
  if (fixed && !inside && hides_all_keys(*fixed)) return false;  // NaN, as the file says
  graph.graph().insert_before(id);
  const NodeId keys = turned_back(graph, turned, rank);
  std::vector<Argument> inputs = {Argument::node(queries), Argument::node(keys),
                                  Argument::node(values)};
  std::vector<std::pair<std::string, Argument>> options;
  if (fixed && is_causal(*fixed, scores)) {
    options.emplace_back("is_causal", Argument::literal(true));
  } else if (hidden) {
    const std::string name = graph.unique_path("attention_mask");
    mask = graph.added(graph.graph().add_constant(name, *hidden), hidden->shape());
  }
  if (mask && options.empty()) inputs.push_back(Argument::node(*mask));
  if (!is_near(scale, 1 / std::sqrt(static_cast<double>(q.back()))))
    options.emplace_back("scale", Argument::literal(scale));
  graph.replace(id, graph.graph().call_function("scaled_dot_product_attention", std::move(inputs),
                                                std::move(options)));
  return true;
}

const Register<Idiom> registered{
    {.name = "attention",
     .summary = "softmax(q k^T * scale + mask) v => scaled_dot_product_attention",
     .ends = {"matmul", "bmm"},
     .find = attention}};

}  // namespace
}  // namespace mase::onnx::attention_idiom
