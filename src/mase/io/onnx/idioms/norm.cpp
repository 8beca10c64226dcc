// SPDX-License-Identifier: Apache-2.0
//   (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * w + b   =>   LayerNorm
//   x / sqrt(mean(x^2) + eps) * w                               =>   RMSNorm
#include <algorithm>

#include "mase/base/text.h"
#include "mase/io/onnx/read/idiom.h"
#include "mase/io/onnx/read/operator.h"
#include "mase/ir/op.h"

namespace mase::onnx::norm_idiom {
namespace {

// The dimensions at the end that a mean goes over and keeps: how many.
std::optional<std::pair<NodeId, size_t>> mean_of_last(const IdiomGraph& graph, NodeId id) {
  const IdiomGraph::Reading r = graph.read(id);
  if (r.op != "mean" || r.inputs.size() != 1 || !r.attributes["keepdim"].as_bool()) return {};
  const size_t rank = graph.shape(r.inputs[0]).size();
  std::vector<int64_t> dims;
  const Value& given = r.attributes["dim"];
  if (given.is_int()) dims = {given.as_int()};
  if (given.is_list()) dims = given.as_int_list("dim");
  if (dims.empty()) return {};
  for (int64_t& dim : dims)
    if (dim < 0) dim += static_cast<int64_t>(rank);
  std::sort(dims.begin(), dims.end());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != static_cast<int64_t>(rank - dims.size() + i)) return {};
  if (dims.size() >= rank) return {};
  return std::pair(r.inputs[0], dims.size());
}

// 1 / sqrt(u + eps) times what it is multiplied with: {what, u, eps}.
struct Normalised {
  NodeId value, spread;
  double eps;
};
std::optional<Normalised> normalised(const IdiomGraph& graph, NodeId id) {
  const IdiomGraph::Reading r = graph.read(id);
  const auto inner = [&](NodeId root) -> std::optional<std::pair<NodeId, double>> {
    return graph.with_number(root, "add");
  };
  const auto root_of = [&](NodeId node) -> std::optional<NodeId> {
    const IdiomGraph::Reading root = graph.read(node);
    if (root.op == "sqrt") return root.inputs[0];
    if (const auto power = graph.with_number(node, "pow"); power && power->second == 0.5)
      return power->first;
    return {};
  };
  const auto inverse_root_of = [&](NodeId node) -> std::optional<NodeId> {
    const IdiomGraph::Reading root = graph.read(node);
    if (root.op == "rsqrt") return root.inputs[0];
    if (const auto power = graph.with_number(node, "pow"); power && power->second == -0.5)
      return power->first;
    if (root.op == "div" && root.inputs.size() == 1 && root.attributes["input"].is_number() &&
        root.attributes["input"].as_double() == 1)
      return root_of(root.inputs[0]);
    return {};
  };
  if (r.inputs.size() != 2) return {};
  if (r.op == "div") {
    const auto under = root_of(r.inputs[1]);
    const auto sum = under ? inner(*under) : std::nullopt;
    if (sum) return Normalised{r.inputs[0], sum->first, sum->second};
  }
  if (r.op == "mul")
    for (size_t i = 0; i < 2; ++i) {
      const auto under = inverse_root_of(r.inputs[i]);
      const auto sum = under ? inner(*under) : std::nullopt;
      if (sum) return Normalised{r.inputs[1 - i], sum->first, sum->second};
    }
  return {};
}

// x - mean(x)
std::optional<std::pair<NodeId, size_t>> centred(const IdiomGraph& graph, NodeId id) {
  const IdiomGraph::Reading r = graph.read(id);
  if (r.op != "sub" || r.inputs.size() != 2) return {};
  const auto mean = mean_of_last(graph, r.inputs[1]);
  if (!mean || mean->first != r.inputs[0]) return {};
  return mean;
}

void rename(IdiomGraph& graph, NodeId id, const std::string& from, const std::string& to) {
  auto entry = graph.graph().modules().extract(from);
  entry.key() = to;
  graph.graph().modules().insert(std::move(entry));
  Node& node = graph.graph().node(id);
  node.target = to;
  const std::string name = replace_all(to, ".", "_");
  if (!graph.graph().find(name)) node.name = name;
}

struct Norm {
  const char* op;
  NodeId x;
  size_t dims;
  double eps;
};
std::optional<Norm> plain_norm(const IdiomGraph& graph, NodeId id) {
  const auto parts = normalised(graph, id);
  if (!parts) return {};
  const auto mean = mean_of_last(graph, parts->spread);
  const auto inside = mean ? graph.squared(mean->first) : std::nullopt;
  if (!inside) return {};
  if (*inside == parts->value) {
    const auto from = centred(graph, *inside);
    if (from && from->second == mean->second)
      return Norm{"layer_norm", from->first, mean->second, parts->eps};
    return Norm{"rms_norm", *inside, mean->second, parts->eps};
  }
  // The difference written twice.
  const auto a = centred(graph, *inside), b = centred(graph, parts->value);
  if (a && b && a->first == b->first && a->second == b->second && a->second == mean->second)
    return Norm{"layer_norm", a->first, mean->second, parts->eps};
  return {};
}

// A constant of the last dimensions times, or plus, something.
struct WithConstant {
  NodeId other, constant;
};
std::optional<WithConstant> with_constant(const IdiomGraph& graph, NodeId id, const char* op,
                                          const Shape& wanted) {
  const IdiomGraph::Reading r = graph.read(id);
  if (r.op != op || r.inputs.size() != 2) return {};
  for (size_t i = 0; i < 2; ++i)
    if (const Tensor* tensor = graph.constant(r.inputs[i])) {
      Shape own = tensor->shape();
      while (own.size() > wanted.size() && own.front() == 1) own.erase(own.begin());
      if (own == wanted) return WithConstant{r.inputs[1 - i], r.inputs[i]};
    }
  return {};
}

bool put_norm(IdiomGraph& graph, NodeId id, const Norm& norm, const Shape& shape,
              const Tensor* weight, const Tensor* bias, const std::string& source) {
  const OpRecord& op = find_op(norm.op);
  Module module{.op = op.name};
  Dict attributes{{"normalized_shape", Value::of(shape)}, {"eps", decimal_of(norm.eps)}};
  if (!weight && !bias) attributes.set("elementwise_affine", false);
  module.attributes = validate(Value(attributes), op.attributes, "");
  for (const ParamSpec& spec :
       op.params ? op.params(module.attributes) : std::vector<ParamSpec>()) {
    Tensor tensor(spec.shape, spec.dtype);
    const Tensor* given = spec.name == "weight" ? weight : bias;
    if (given)
      tensor = given->to(spec.dtype).reshaped(spec.shape);
    else if (spec.name == "weight")
      std::fill_n(tensor.mutable_data<float>(), tensor.numel(), 1.0f);
    module.parameters.emplace_back(spec.name, tensor);
  }
  std::string path = op.name;
  if (ends_with(source, ".weight")) path = source.substr(0, source.size() - 7);
  graph.graph().insert_before(id);
  const std::string draft = graph.unique_path("idiom");
  const NodeId node = graph.graph().add_module(draft, std::move(module), {norm.x});
  graph.replace(id, node);
  // The path is free once the tensors that stood there are gone.
  rename(graph, node, draft, graph.unique_path(path));
  return true;
}

bool norm(IdiomGraph& graph, NodeId id) {
  NodeId at = id;
  const Shape whole = graph.shape(id);
  // Outside in: a bias, a weight, the norm itself.
  for (size_t dims = 1; dims < whole.size() && dims <= 3; ++dims) {
    const Shape wanted(whole.end() - static_cast<std::ptrdiff_t>(dims), whole.end());
    at = id;
    const auto bias = with_constant(graph, at, "add", wanted);
    if (bias) at = bias->other;
    const auto weight = with_constant(graph, at, "mul", wanted);
    if (bias && !weight) continue;
    if (weight) at = weight->other;
    const auto found = plain_norm(graph, at);
    if (!found || found->dims != dims) continue;
    const bool layer = std::string(found->op) == "layer_norm";
    if (!layer && bias) continue;
    if ((bias && !graph.is_sole(bias->other)) || (weight && !graph.is_sole(weight->other)))
      continue;
    return put_norm(graph, id, *found, wanted, weight ? graph.constant(weight->constant) : nullptr,
                    bias ? graph.constant(bias->constant) : nullptr,
                    weight ? graph.graph().node(weight->constant).target : "");
  }
  return false;
}

const Register<Idiom> registered{
    {.name = "norm",
     .summary = "differences, means and roots of the last dimensions => LayerNorm, RMSNorm",
     .ends = {"add", "mul", "div"},
     .find = norm}};

}  // namespace
}  // namespace mase::onnx::norm_idiom
