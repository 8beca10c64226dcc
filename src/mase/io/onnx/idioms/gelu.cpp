// SPDX-License-Identifier: Apache-2.0
//   x / 2 * (1 + erf(x / sqrt(2))), and its form with tanh   =>   gelu
#include <cmath>
#include <numbers>

#include "mase/io/onnx/read/idiom.h"

namespace mase::onnx::gelu_idiom {
namespace {

// (1 + tanh(..)) or (1 + erf(..)) of x.
std::optional<const char*> gate_of(const IdiomGraph& graph, NodeId id, NodeId x) {
  const auto sum = graph.with_number(id, "add");
  if (!sum || !is_near(sum->second, 1)) return {};
  const IdiomGraph::Reading curve = graph.read(sum->first);
  if (curve.op != "erf" && curve.op != "tanh") return {};
  const IdiomGraph::Product inner = graph.product_of(curve.inputs[0]);
  if (curve.op == "erf") {
    if (inner.factors == std::vector<NodeId>{x} && is_near(inner.number, std::numbers::sqrt2 / 2))
      return "none";
    return {};
  }
  const double factor = std::sqrt(2 / std::numbers::pi);
  if (inner.factors.size() != 1 || !is_near(inner.number, factor)) return {};
  const IdiomGraph::Reading added = graph.read(inner.factors[0]);
  if (added.op != "add" || added.inputs.size() != 2) return {};
  for (size_t i = 0; i < 2; ++i) {
    const IdiomGraph::Product cube = graph.product_of(added.inputs[i]);
    if (added.inputs[1 - i] == x && is_near(cube.number, 0.044715) &&
        cube.factors == std::vector<NodeId>(3, x))
      return "tanh";
  }
  return {};
}

bool gelu(IdiomGraph& graph, NodeId id) {
  const IdiomGraph::Product product = graph.product_of(id);
  if (product.factors.size() != 2 || !is_near(product.number, 0.5)) return false;
  for (size_t i = 0; i < 2; ++i) {
    const NodeId x = product.factors[i];
    const auto form = gate_of(graph, product.factors[1 - i], x);
    if (!form) continue;
    graph.graph().insert_before(id);
    graph.replace(id, graph.graph().call_function("gelu", {Argument::node(x)},
                                                  {{"approximate", Argument::literal(*form)}}));
    return true;
  }
  return false;
}

const Register<Idiom> registered{{.name = "gelu",
                                  .summary = "x / 2 * (1 + erf(x / sqrt(2))) => gelu",
                                  .ends = {"mul"},
                                  .find = gelu}};

}  // namespace
}  // namespace mase::onnx::gelu_idiom
