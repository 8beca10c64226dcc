// SPDX-License-Identifier: Apache-2.0
//   x * cos + rotated(x) * sin, of tables that are angles   =>   rotary_embedding
#include <cmath>

#include "mase/io/onnx/idiom.h"

namespace mase::onnx::rotary_idiom {
namespace {

// The base of angles position * base^(-i / half), if these tables are their cosines and sines.
std::optional<double> rotary_base(const Tensor& cosine, const Tensor& sine, int64_t positions,
                                  int64_t width) {
  const int64_t half = width / 2;
  if (cosine.numel() != positions * width || sine.numel() != positions * width || half < 2 ||
      positions < 2)
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
        const auto base = rotary_base(*cosine, *sine, positions, width);
        if (!base) continue;
        graph.graph().insert_before(id);
        graph.replace(id, graph.graph().call_function("rotary_embedding", {Argument::node(x)},
                                                      {{"base", Argument::literal(*base)}}));
        return true;
      }
  }
  return false;
}

const Register<Idiom> registered{{.name = "rotary",
                                  .summary = "x * cos + rotated(x) * sin => rotary_embedding",
                                  .ends = {"add"},
                                  .find = rotary}};

}  // namespace
}  // namespace mase::onnx::rotary_idiom
