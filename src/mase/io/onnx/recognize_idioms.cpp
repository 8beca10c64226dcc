// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/recognize_idioms.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>

#include "mase/base/text.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/op.h"

namespace mase::onnx {
namespace {

bool near(double a, double b) { return std::fabs(a - b) <= 1e-4 * std::fabs(b); }

// What a node computes, read without a care for how it is called.
struct Reading {
  std::string op;  // "" for what is no call, or is quantised
  std::vector<NodeId> inputs;
  Value attributes;
};

class Recognizer {
 public:
  explicit Recognizer(Graph& graph) : graph_(graph), shapes_(infer_shapes(graph, 3)) {
    gone_.resize(graph.id_limit(), false);
    uses_.resize(graph.id_limit(), 0);
    for (const NodeId id : graph.order()) count_inputs(id, 1);
  }

  void run() {
    using Rule = bool (Recognizer::*)(NodeId);
    for (const Rule rule :
         {&Recognizer::gelu, &Recognizer::norm, &Recognizer::rotary, &Recognizer::attention}) {
      std::vector<NodeId> order = graph_.order();
      std::reverse(order.begin(), order.end());  // a norm with its bias before one without
      for (const NodeId id : order) {
        if (gone_[static_cast<size_t>(id)]) continue;
        const Node& node = graph_.node(id);
        if (node.kind == NodeKind::call_function && starts(rule, node.target)) (this->*rule)(id);
      }
    }
  }

 private:
  // The ops an idiom ends with, so that nothing is read in vain.
  template <class Rule>
  bool starts(Rule rule, const std::string& op) const {
    if (rule == &Recognizer::attention) return op == "matmul" || op == "bmm";
    if (rule == &Recognizer::gelu) return op == "mul";
    if (rule == &Recognizer::rotary) return op == "add";
    return op == "add" || op == "mul" || op == "div";
  }

  Reading read(NodeId id) const {
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

  bool is_sole(NodeId id) const { return uses_[static_cast<size_t>(id)] == 1; }

  // Each user counts once, however often it takes a value.
  void count_inputs(NodeId id, int change) {
    std::vector<NodeId> inputs = graph_.inputs_of(id);
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const NodeId input : inputs) uses_[static_cast<size_t>(input)] += change;
  }

  // A node that was just added has this shape: by value, since it may be one of those that move.
  NodeId added(NodeId id, Shape shape) {
    gone_.resize(graph_.id_limit(), false);
    uses_.resize(graph_.id_limit(), 0);
    shapes_.resize(graph_.id_limit());
    shapes_[static_cast<size_t>(id)] = std::move(shape);
    count_inputs(id, 1);
    return id;
  }

  const Tensor* constant(NodeId id) const {
    const Node& node = graph_.node(id);
    return node.kind == NodeKind::get_attr ? graph_.tensor(node.target) : nullptr;
  }

  // x op number, whichever side the number is on where that makes no difference.
  std::optional<std::pair<NodeId, double>> with_number(NodeId id, const char* op) const {
    const Reading r = read(id);
    if (r.op != op || r.inputs.size() != 1) return {};
    for (const char* side : {"other", "input"}) {
      const bool turned = std::string(side) == "input";
      if (r.attributes[side].is_number() &&
          !(turned &&
            (std::string(op) == "div" || std::string(op) == "sub" || std::string(op) == "pow")))
        return std::pair(r.inputs[0], r.attributes[side].as_double());
    }
    return {};
  }

  // Products of products: what is multiplied, and the numbers among it.
  struct Product {
    std::vector<NodeId> factors;
    double number = 1;
  };
  void collect(NodeId id, bool root, Product& product, int depth = 0) const {
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
  Product product_of(NodeId id) const {
    Product product;
    collect(id, true, product);
    return product;
  }

  // x^2
  std::optional<NodeId> squared(NodeId id) const {
    const Reading r = read(id);
    if (r.op == "square") return r.inputs[0];
    if (const auto power = with_number(id, "pow"); power && power->second == 2) return power->first;
    if (r.op == "mul" && r.inputs.size() == 2 && r.inputs[0] == r.inputs[1]) return r.inputs[0];
    return {};
  }

  // The dimensions at the end that a mean goes over and keeps: how many.
  std::optional<std::pair<NodeId, size_t>> mean_of_last(NodeId id) const {
    const Reading r = read(id);
    if (r.op != "mean" || r.inputs.size() != 1 || !r.attributes["keepdim"].as_bool()) return {};
    const size_t rank = shape(r.inputs[0]).size();
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
  std::optional<Normalised> normalised(NodeId id) const {
    const Reading r = read(id);
    const auto inner = [&](NodeId root) -> std::optional<std::pair<NodeId, double>> {
      return with_number(root, "add");
    };
    const auto root_of = [&](NodeId node) -> std::optional<NodeId> {
      const Reading root = read(node);
      if (root.op == "sqrt") return root.inputs[0];
      if (const auto power = with_number(node, "pow"); power && power->second == 0.5)
        return power->first;
      return {};
    };
    const auto inverse_root_of = [&](NodeId node) -> std::optional<NodeId> {
      const Reading root = read(node);
      if (root.op == "rsqrt") return root.inputs[0];
      if (const auto power = with_number(node, "pow"); power && power->second == -0.5)
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
  std::optional<std::pair<NodeId, size_t>> centred(NodeId id) const {
    const Reading r = read(id);
    if (r.op != "sub" || r.inputs.size() != 2) return {};
    const auto mean = mean_of_last(r.inputs[1]);
    if (!mean || mean->first != r.inputs[0]) return {};
    return mean;
  }

  struct Norm {
    const char* op;
    NodeId x;
    size_t dims;
    double eps;
  };
  std::optional<Norm> plain_norm(NodeId id) const {
    const auto parts = normalised(id);
    if (!parts) return {};
    const auto mean = mean_of_last(parts->spread);
    const auto inside = mean ? squared(mean->first) : std::nullopt;
    if (!inside) return {};
    if (*inside == parts->value) {
      const auto from = centred(*inside);
      if (from && from->second == mean->second)
        return Norm{"layer_norm", from->first, mean->second, parts->eps};
      return Norm{"rms_norm", *inside, mean->second, parts->eps};
    }
    // The difference written twice.
    const auto a = centred(*inside), b = centred(parts->value);
    if (a && b && a->first == b->first && a->second == b->second && a->second == mean->second)
      return Norm{"layer_norm", a->first, mean->second, parts->eps};
    return {};
  }

  // A constant of the last dimensions times, or plus, something.
  struct WithConstant {
    NodeId other, constant;
  };
  std::optional<WithConstant> with_constant(NodeId id, const char* op, const Shape& wanted) const {
    const Reading r = read(id);
    if (r.op != op || r.inputs.size() != 2) return {};
    for (size_t i = 0; i < 2; ++i)
      if (const Tensor* tensor = constant(r.inputs[i])) {
        Shape own = tensor->shape();
        while (own.size() > wanted.size() && own.front() == 1) own.erase(own.begin());
        if (own == wanted) return WithConstant{r.inputs[1 - i], r.inputs[i]};
      }
    return {};
  }

  bool norm(NodeId id) {
    NodeId at = id;
    const Shape whole = shape(id);
    // Outside in: a bias, a weight, the norm itself.
    for (size_t dims = 1; dims < whole.size() && dims <= 3; ++dims) {
      const Shape wanted(whole.end() - static_cast<std::ptrdiff_t>(dims), whole.end());
      at = id;
      const auto bias = with_constant(at, "add", wanted);
      if (bias) at = bias->other;
      const auto weight = with_constant(at, "mul", wanted);
      if (bias && !weight) continue;
      if (weight) at = weight->other;
      const auto found = plain_norm(at);
      if (!found || found->dims != dims) continue;
      const bool layer = std::string(found->op) == "layer_norm";
      if (!layer && bias) continue;
      if ((bias && !is_sole(bias->other)) || (weight && !is_sole(weight->other))) continue;
      return put_norm(id, *found, wanted, weight ? constant(weight->constant) : nullptr,
                      bias ? constant(bias->constant) : nullptr,
                      weight ? graph_.node(weight->constant).target : "");
    }
    return false;
  }

  bool put_norm(NodeId id, const Norm& norm, const Shape& shape, const Tensor* weight,
                const Tensor* bias, const std::string& source) {
    const OpRecord& op = find_op(norm.op);
    Module module{.op = op.name};
    Dict attributes{{"normalized_shape", Value::of(shape)}, {"eps", norm.eps}};
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
    graph_.insert_before(id);
    const std::string draft = unique_path("idiom");
    const NodeId node = graph_.add_module(draft, std::move(module), {norm.x});
    replace(id, node);
    // The path is free once the tensors that stood there are gone.
    rename(node, draft, unique_path(path));
    return true;
  }

  std::string unique_path(const std::string& base) const {
    std::string path = base;
    for (int number = 1; graph_.modules().count(path) || graph_.tensor(path); ++number)
      path = fmt::format("{}_{}", base, number);
    return path;
  }

  void rename(NodeId id, const std::string& from, const std::string& to) {
    auto entry = graph_.modules().extract(from);
    entry.key() = to;
    graph_.modules().insert(std::move(entry));
    Node& node = graph_.node(id);
    node.target = to;
    const std::string name = replace_all(to, ".", "_");
    if (!graph_.find(name)) node.name = name;
  }

  // (1 + tanh(..)) or (1 + erf(..)) of x.
  std::optional<const char*> gate_of(NodeId id, NodeId x) const {
    const auto sum = with_number(id, "add");
    if (!sum || !near(sum->second, 1)) return {};
    const Reading curve = read(sum->first);
    if (curve.op != "erf" && curve.op != "tanh") return {};
    const Product inner = product_of(curve.inputs[0]);
    if (curve.op == "erf") {
      if (inner.factors == std::vector<NodeId>{x} && near(inner.number, std::numbers::sqrt2 / 2))
        return "none";
      return {};
    }
    const double factor = std::sqrt(2 / std::numbers::pi);
    if (inner.factors.size() != 1 || !near(inner.number, factor)) return {};
    const Reading added = read(inner.factors[0]);
    if (added.op != "add" || added.inputs.size() != 2) return {};
    for (size_t i = 0; i < 2; ++i) {
      const Product cube = product_of(added.inputs[i]);
      if (added.inputs[1 - i] == x && near(cube.number, 0.044715) &&
          cube.factors == std::vector<NodeId>(3, x))
        return "tanh";
    }
    return {};
  }

  bool gelu(NodeId id) {
    const Product product = product_of(id);
    if (product.factors.size() != 2 || !near(product.number, 0.5)) return false;
    for (size_t i = 0; i < 2; ++i) {
      const NodeId x = product.factors[i];
      const auto form = gate_of(product.factors[1 - i], x);
      if (!form) continue;
      graph_.insert_before(id);
      replace(id, graph_.call_function("gelu", {Argument::node(x)},
                                       {{"approximate", Argument::literal(*form)}}));
      return true;
    }
    return false;
  }

  // The base of angles position * base^(-i / half), if these tables are their cosines and sines.
  std::optional<double> rotary_base(const Tensor& cosine, const Tensor& sine, int64_t positions,
                                    int64_t width) const {
    const int64_t half = width / 2;
    if (cosine.numel() != positions * width || sine.numel() != positions * width || half < 2 ||
        positions < 2)
      return {};
    const double angle = std::atan2(sine.item(width + 1), cosine.item(width + 1));
    if (!(angle > 0 && angle < 1)) return {};
    double base = std::pow(angle, -static_cast<double>(half));
    if (near(base, std::round(base))) base = std::round(base);
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t i = 0; i < width; ++i) {
        const double exact =
            static_cast<double>(p) *
            std::pow(base, -static_cast<double>(i % half) / static_cast<double>(half));
        if (std::fabs(std::cos(exact) - cosine.item(p * width + i)) > 2e-4 ||
            std::fabs(std::sin(exact) - sine.item(p * width + i)) > 2e-4)
          return {};
      }
    return base;
  }

  // The part of the last dimension that a node takes.
  std::optional<std::pair<NodeId, int64_t>> half_of(NodeId id, int64_t half) const {
    const Reading r = read(id);
    if (r.op != "narrow" || r.inputs.size() != 1) return {};
    const auto rank = static_cast<int64_t>(shape(r.inputs[0]).size());
    const int64_t dim = r.attributes["dim"].as_int();
    if ((dim < 0 ? dim + rank : dim) != rank - 1 || r.attributes["length"].as_int() != half)
      return {};
    return std::pair(r.inputs[0], r.attributes["start"].as_int());
  }

  bool rotary(NodeId id) {
    const Reading sum = read(id);
    if (sum.inputs.size() != 2 || shape(id).size() < 2) return false;
    const int64_t width = shape(id).back(), positions = shape(id)[shape(id).size() - 2];
    for (size_t i = 0; i < 2; ++i) {
      const Reading straight = read(sum.inputs[i]), turned = read(sum.inputs[1 - i]);
      if (straight.op != "mul" || turned.op != "mul" || straight.inputs.size() != 2 ||
          turned.inputs.size() != 2)
        continue;
      for (size_t a = 0; a < 2; ++a)
        for (size_t b = 0; b < 2; ++b) {
          const Tensor *cosine = constant(straight.inputs[1 - a]),
                       *sine = constant(turned.inputs[1 - b]);
          const NodeId x = straight.inputs[a];
          const Reading halves = read(turned.inputs[b]);
          if (!cosine || !sine || halves.op != "cat" || halves.inputs.size() != 2) continue;
          const Reading negative = read(halves.inputs[0]);
          if (negative.op != "neg") continue;
          const auto second = half_of(negative.inputs[0], width / 2),
                     first = half_of(halves.inputs[1], width / 2);
          if (!second || !first || *second != std::pair(x, width / 2) ||
              *first != std::pair(x, int64_t{0}))
            continue;
          const auto base = rotary_base(*cosine, *sine, positions, width);
          if (!base) continue;
          graph_.insert_before(id);
          replace(id, graph_.call_function("rotary_embedding", {Argument::node(x)},
                                           {{"base", Argument::literal(*base)}}));
          return true;
        }
    }
    return false;
  }

  // Numbers a value is multiplied with on its way.
  std::pair<NodeId, double> unscaled(NodeId id) const {
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

  // Zeros on and below the diagonal, next to minus infinity above it.
  static bool is_causal(const Tensor& mask, const Shape& scores) {
    const int64_t length = scores[scores.size() - 2], keys = scores.back();
    if (length != keys || length < 2 || mask.numel() != length * keys) return false;
    for (int64_t i = 0; i < length; ++i)
      for (int64_t k = 0; k < keys; ++k) {
        const double value = mask.item(i * keys + k);
        if (k <= i ? value != 0 : value > -1e30) return false;
      }
    return true;
  }

  bool attention(NodeId id) {
    const Reading product = read(id);
    if (product.inputs.size() != 2 || !is_sole(product.inputs[0])) return false;
    const Reading softmax = read(product.inputs[0]);
    const NodeId values = product.inputs[1];
    if (softmax.op != "softmax" || !softmax.attributes["dim"].is_int()) return false;
    const Shape scores = shape(product.inputs[0]);
    const auto rank = static_cast<int64_t>(scores.size());
    const int64_t dim = softmax.attributes["dim"].as_int();
    if ((dim < 0 ? dim + rank : dim) != rank - 1 || rank < 3) return false;
    NodeId at = softmax.inputs[0];
    double scale = 1;
    std::optional<NodeId> mask;
    const auto scores_of = [&](NodeId node) -> std::optional<Reading> {
      auto [inner, factor] = unscaled(node);
      const Reading r = read(inner);
      if ((r.op != "matmul" && r.op != "bmm") || r.inputs.size() != 2 || !is_sole(inner)) return {};
      scale = factor;
      return r;
    };
    auto found = scores_of(at);
    std::optional<Tensor> hidden;  // a mask that chooses between scores and minus infinity
    if (const Reading chosen = read(at); !found && chosen.op == "where" && is_sole(at)) {
      const bool fills = constant(chosen.inputs[1]) != nullptr;  // as masked_fill does
      const Tensor *choice = constant(chosen.inputs[0]),
                   *value = constant(chosen.inputs[fills ? 1 : 2]);
      if (!choice || !value || value->numel() != 1 || value->item() > -1e30) return false;
      found = scores_of(chosen.inputs[fills ? 2 : 1]);
      if (!found) return false;
      hidden.emplace(choice->shape());
      for (int64_t i = 0; i < choice->numel(); ++i)
        hidden->mutable_data<float>()[i] =
            (choice->item(i) != 0) != fills ? 0.0f : static_cast<float>(value->item());
    }
    if (!found) {
      const Reading sum = read(at);
      if (sum.op != "add" || sum.inputs.size() != 2 || !is_sole(at)) return false;
      for (size_t i = 0; i < 2 && !found; ++i) {
        found = scores_of(sum.inputs[i]);
        if (found) mask = sum.inputs[1 - i];
      }
    }
    if (!found) return false;
    auto [queries, q_scale] = unscaled(found->inputs[0]);
    auto [turned, k_scale] = unscaled(found->inputs[1]);
    scale *= q_scale * k_scale;
    const Shape q = shape(queries), kt = shape(turned), v = shape(values);
    if (static_cast<int64_t>(q.size()) != rank || static_cast<int64_t>(kt.size()) != rank ||
        static_cast<int64_t>(v.size()) != rank)
      return false;
    for (int64_t i = 0; i + 2 < rank; ++i) {
      const auto d = static_cast<size_t>(i);
      const bool shares = i + 3 == rank && rank > 3 && kt[d] > 0 && q[d] % kt[d] == 0;
      if (kt[d] != v[d] || (q[d] != kt[d] && !shares)) return false;
    }
    if (mask && graph_.node(*mask).kind == NodeKind::get_attr &&
        graph_.tensor(graph_.node(*mask).target)->dtype() != DType::f32)
      return false;
    graph_.insert_before(id);
    const NodeId keys = turned_back(turned, rank);
    std::vector<Argument> inputs = {Argument::node(queries), Argument::node(keys),
                                    Argument::node(values)};
    std::vector<std::pair<std::string, Argument>> options;
    const Tensor* fixed = hidden ? &*hidden : mask ? constant(*mask) : nullptr;
    if (fixed && is_causal(*fixed, scores)) {
      options.emplace_back("is_causal", Argument::literal(true));
    } else if (hidden) {
      std::string name = "attention_mask";
      for (int number = 1; graph_.tensor(name) || graph_.modules().count(name); ++number)
        name = fmt::format("attention_mask_{}", number);
      mask = added(graph_.add_constant(name, *hidden), hidden->shape());
    }
    if (mask && options.empty()) inputs.push_back(Argument::node(*mask));
    if (!near(scale, 1 / std::sqrt(static_cast<double>(q.back()))))
      options.emplace_back("scale", Argument::literal(scale));
    replace(id, graph_.call_function("scaled_dot_product_attention", std::move(inputs),
                                     std::move(options)));
    return true;
  }

  // [.., E, S] as [.., S, E]: one permutation where it was the result of one.
  NodeId turned_back(NodeId id, int64_t rank) {
    const Reading r = read(id);
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
    Shape back = shape(id);
    std::swap(back[back.size() - 1], back[back.size() - 2]);
    return added(graph_.call_function("permute", {Argument::node(from)},
                                      {{"dims", Argument::literal(Value::of(order))}}),
                 back);
  }

  // `made` is the node in place of `old_id`, just added.
  void replace(NodeId old_id, NodeId made) {
    graph_.append();
    added(made, shape(old_id));
    graph_.replace_uses(old_id, made);
    std::swap(uses_[static_cast<size_t>(made)], uses_[static_cast<size_t>(old_id)]);
    remove(old_id);
  }

  // With what only it needed.
  void remove(NodeId id) {
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

  const Shape& shape(NodeId id) const { return shapes_[static_cast<size_t>(id)]; }

  Graph& graph_;
  std::vector<Shape> shapes_;  // by node, for a batch of 3
  std::vector<bool> gone_;
  std::vector<int> uses_;
};

}  // namespace

void recognize_idioms(Graph& graph) { Recognizer(graph).run(); }

}  // namespace mase::onnx
