// SPDX-License-Identifier: Apache-2.0
//   x * cos + rotated(x) * sin, of tables that are angles   =>   rotary_embedding
//   cat(a * cos - b * sin, b * cos + a * sin), a and b the halves of x   =>   the same
#include <cmath>

#include "mase/io/onnx/read/idiom.h"

namespace mase::onnx::rotary_idiom {
namespace {

// The base of angles position * base^(-i / half), if these tables are their cosines and sines.
// They have a column for each pair, or each twice.
std::optional<double> rotary_base(const Tensor& cosine, const Tensor& sine, int64_t positions,
                                  int64_t half) {
  const int64_t width = positions > 0 ? cosine.numel() / positions : 0;
  if ((width != half && width != 2 * half) || cosine.numel() != positions * width ||
      sine.numel() != cosine.numel() || half < 2 || positions < 2)
    return {};
  const double angle = std::atan2(sine.item(width + 1), cosine.item(width + 1));
  if (!(angle > 0 && angle < 1)) return {};
  double base = std::pow(angle, -static_cast<double>(half));
  if (is_near(base, std::round(base))) base = std::round(base);
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t i = 0; i < width; ++i) {
      const double exact = static_cast<double>(p) * std::pow(base, -static_cast<double>(i % half) /
                                                                       static_cast<double>(half));
      if (std::fabs(std::cos(exact) - cosine.item(p * width + i)) > 2e-4 ||
          std::fabs(std::sin(exact) - sine.item(p * width + i)) > 2e-4)
        return {};
    }
  return base;
}

// The part of the last dimension that a node takes.
std::optional<std::pair<NodeId, int64_t>> half_of(const IdiomGraph& graph, NodeId id,
                                                  int64_t half) {
  const IdiomGraph::Reading r = graph.read(id);
  if (r.op != "narrow" || r.inputs.size() != 1) return {};
  const auto rank = static_cast<int64_t>(graph.shape(r.inputs[0]).size());
  const int64_t dim = r.attributes["dim"].as_int();
  if ((dim < 0 ? dim + rank : dim) != rank - 1 || r.attributes["length"].as_int() != half)
    return {};
  return std::pair(r.inputs[0], r.attributes["start"].as_int());
}

bool rotary(IdiomGraph& graph, NodeId id) {
  const IdiomGraph::Reading sum = graph.read(id);
  if (sum.inputs.size() != 2 || graph.shape(id).size() < 2) return false;
  const int64_t width = graph.shape(id).back(),
                positions = graph.shape(id)[graph.shape(id).size() - 2];
  for (size_t i = 0; i < 2; ++i) {
    const IdiomGraph::Reading straight = graph.read(sum.inputs[i]),
                              turned = graph.read(sum.inputs[1 - i]);
    if (straight.op != "mul" || turned.op != "mul" || straight.inputs.size() != 2 ||
        turned.inputs.size() != 2)
      continue;
    for (size_t a = 0; a < 2; ++a)
      for (size_t b = 0; b < 2; ++b) {
        const Tensor *cosine = graph.constant(straight.inputs[1 - a]),
                     *sine = graph.constant(turned.inputs[1 - b]);
        const NodeId x = straight.inputs[a];
        const IdiomGraph::Reading halves = graph.read(turned.inputs[b]);
        if (!cosine || !sine || halves.op != "cat" || halves.inputs.size() != 2) continue;
        const IdiomGraph::Reading negative = graph.read(halves.inputs[0]);
        if (negative.op != "neg") continue;
        const auto second = half_of(graph, negative.inputs[0], width / 2),
                   first = half_of(graph, halves.inputs[1], width / 2);
        if (!second || !first || *second != std::pair(x, width / 2) ||
            *first != std::pair(x, int64_t{0}))
          continue;
        const auto base = rotary_base(*cosine, *sine, positions, width / 2);
        if (!base) continue;
        graph.graph().insert_before(id);
        graph.replace(id, graph.graph().call_function("rotary_embedding", {Argument::node(x)},
                                                      {{"base", Argument::literal(*base)}}));
        return true;
      }
  }
  return false;
}

// Something times a constant.
struct Scaled {
  NodeId x;
  const Tensor* by;
};
std::optional<Scaled> scaled(const IdiomGraph& graph, NodeId id) {
  const IdiomGraph::Reading product = graph.read(id);
  if (product.op != "mul" || product.inputs.size() != 2) return {};
  for (size_t i = 0; i < 2; ++i)
    if (const Tensor* by = graph.constant(product.inputs[1 - i]))
      return Scaled{product.inputs[i], by};
  return {};
}

bool same_numbers(const Tensor& a, const Tensor& b) {
  if (a.numel() != b.numel()) return false;
  for (int64_t i = 0; i < a.numel(); ++i)
    if (a.item(i) != b.item(i)) return false;
  return true;
}

bool rotary_halves(IdiomGraph& graph, NodeId id) {
  const IdiomGraph::Reading joined = graph.read(id);
  const Shape shape = graph.shape(id);
  const auto rank = static_cast<int64_t>(shape.size());
  if (joined.inputs.size() != 2 || rank < 2 || !joined.attributes["dim"].is_int()) return false;
  const int64_t dim = joined.attributes["dim"].as_int(), half = shape.back() / 2;
  if ((dim < 0 ? dim + rank : dim) != rank - 1) return false;
  const IdiomGraph::Reading real = graph.read(joined.inputs[0]),
                            imaginary = graph.read(joined.inputs[1]);
  if (real.op != "sub" || imaginary.op != "add" || real.inputs.size() != 2 ||
      imaginary.inputs.size() != 2)
    return false;
  const auto a = scaled(graph, real.inputs[0]), b = scaled(graph, real.inputs[1]);
  if (!a || !b) return false;
  const auto first = half_of(graph, a->x, half), second = half_of(graph, b->x, half);
  if (!first || !second || first->second != 0 || *second != std::pair(first->first, half))
    return false;
  for (size_t i = 0; i < 2; ++i) {
    const auto p = scaled(graph, imaginary.inputs[i]), q = scaled(graph, imaginary.inputs[1 - i]);
    if (!p || !q || half_of(graph, p->x, half) != second || half_of(graph, q->x, half) != first ||
        !same_numbers(*p->by, *a->by) || !same_numbers(*q->by, *b->by))
      continue;
    const auto base = rotary_base(*a->by, *b->by, shape[shape.size() - 2], half);
    if (!base) return false;
    graph.graph().insert_before(id);
    graph.replace(id,
                  graph.graph().call_function("rotary_embedding", {Argument::node(first->first)},
                                              {{"base", Argument::literal(*base)}}));
    return true;
  }
  return false;
}

const Register<Idiom> halves{
    {.name = "rotary_halves",
     .summary = "cat(a * cos - b * sin, b * cos + a * sin) => rotary_embedding",
     .ends = {"cat"},
     .find = rotary_halves}};
const Register<Idiom> registered{{.name = "rotary",
                                  .summary = "x * cos + rotated(x) * sin => rotary_embedding",
                                  .ends = {"add"},
                                  .find = rotary}};

}  // namespace
}  // namespace mase::onnx::rotary_idiom
