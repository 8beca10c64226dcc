// SPDX-License-Identifier: Apache-2.0
// Rewrites of the primitive list that save sweeps over memory. Each rule is one function with its
// before => after; the list at the end says in which order they are tried at each primitive.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitives/convolution_bands.h"

namespace mase::engine {
namespace {

// What an expression keeps its operand between, if it does nothing else.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

std::optional<Limits> limits_of(const Expr& expr) {
  const Expr::Node& node = expr.node();
  if (node.op == ScalarOp::operand) return Limits{};
  const auto limit = [](const Expr& e) -> std::optional<double> {
    if (e.node().op != ScalarOp::constant || std::isnan(e.node().constant)) return {};
    return e.node().constant;
  };
  const auto at_least = [&](const Expr& inner, double low) -> std::optional<Limits> {
    const std::optional<Limits> own = limits_of(inner);
    if (!own) return {};
    return Limits{std::max(own->low, low), std::max(own->high, low)};
  };
  const auto at_most = [&](const Expr& inner, double high) -> std::optional<Limits> {
    const std::optional<Limits> own = limits_of(inner);
    if (!own) return {};
    return Limits{std::min(own->low, high), std::min(own->high, high)};
  };
  if (node.op == ScalarOp::max || node.op == ScalarOp::min) {
    const std::optional<double> value = limit(node.inputs[1]);
    if (!value) return {};
    return node.op == ScalarOp::max ? at_least(node.inputs[0], *value)
                                    : at_most(node.inputs[0], *value);
  }
  // a < b ? limit : x, where a and b are the limit and x
  if (node.op != ScalarOp::select || node.inputs[0].node().op != ScalarOp::less) return {};
  const std::vector<Expr>& compared = node.inputs[0].node().inputs;
  const std::optional<double> value = limit(node.inputs[1]);
  const Expr& inner = node.inputs[2];
  if (!value) return {};
  if (compared[0].pointer() == inner.pointer() && limit(compared[1]) == value)
    return at_least(inner, *value);
  if (compared[1].pointer() == inner.pointer() && limit(compared[0]) == value)
    return at_most(inner, *value);
  return {};
}

// The primitives, and who reads what.
class Rewriting {
 public:
  explicit Rewriting(Plan& of) : plan(of), users_(of.tensors.size()) {
    for (size_t i = 0; i < plan.primitives.size(); ++i) {
      const Primitive& p = plan.primitives[i];
      const auto use = [&](int tensor) {
        if (tensor >= 0) users_[static_cast<size_t>(plan.root(tensor))].push_back(i);
      };
      for (const int tensor : p.in) use(tensor);
      for (const auto& [name, tensor] : p.params) use(tensor);
      for (const int tensor : {p.weight, p.bias}) use(tensor);
    }
  }

  bool training() const { return plan.options.training; }
  const std::vector<size_t>& users(int tensor) const {
    return users_[static_cast<size_t>(plan.root(tensor))];
  }
  // The only reader of a result nobody else may look at.
  Primitive* only_user(int tensor) {
    if (plan.root(tensor) != tensor || plan.at(tensor).pinned) return nullptr;
    if (users(tensor).size() != 1) return nullptr;
    Primitive& user = plan.primitives[users(tensor)[0]];
    return !user.removed && user.in.size() == 1 && user.in[0] == tensor ? &user : nullptr;
  }
  template <class Payload>
  Primitive* only_user_of(const Primitive& p) {
    Primitive* user = only_user(p.out);
    return user && user->is<Payload>() ? user : nullptr;
  }
  // The one whose result `user` alone reads.
  template <class Payload>
  Primitive* only_maker_of(const Primitive& user) {
    if (user.in.size() != 1 || only_user(user.in[0]) != &user) return nullptr;
    for (Primitive* p = plan.primitives.data(); p != &user; ++p)
      if (!p->removed && p->out == user.in[0]) return p->is<Payload>() ? p : nullptr;
    return nullptr;
  }
  // `p` gives the result of `user`, which is gone.
  int take(Primitive& p, Primitive& user) {
    p.out = user.out;
    user.removed = true;
    return static_cast<int>(&user - plan.primitives.data());
  }
  bool computed(int tensor) const { return tensor >= 0 && plan.at(tensor).place == Place::arena; }

  Plan& plan;

 private:
  std::vector<std::vector<size_t>> users_;
};

bool is_relu(const Primitive& p) {
  const Expr::Node& node = p.as<MapPayload>().expr.node();
  return node.op == ScalarOp::max && node.inputs[0].node().op == ScalarOp::operand &&
         node.inputs[1].is_constant(0);
}

bool take_relu(Rewriting& program, Primitive& p, bool& relu) {
  Primitive* user = program.only_user_of<MapPayload>(p);
  if (!user || !is_relu(*user)) return false;
  relu = true;
  program.take(p, *user);
  return true;
}

template <class Payload>
bool take_limits(Rewriting& program, Primitive& p, Primitive& user, Payload& own) {
  // What is repeated as well stays.
  if (program.plan.at(user.out).shape != program.plan.at(p.out).shape) return false;
  const std::optional<Limits> limits = limits_of(user.as<MapPayload>().expr);
  if (!limits) return false;
  own.low = static_cast<float>(limits->low);
  own.high = static_cast<float>(limits->high);
  program.take(p, user);
  return true;
}

// The batch norm behind a result, if it is a fixed scale and shift of each channel and all its
// parameters are plain ones: a rounded parameter must stay what it is.
Primitive* fixed_norm(Rewriting& program, const Primitive& p) {
  if (program.training() || !program.plan.options.fold_batch_norm) return nullptr;
  Primitive* norm = program.only_user_of<BatchNormPayload>(p);
  if (!norm || norm->as<BatchNormPayload>().batch_statistics) return nullptr;
  return program.computed(norm->weight) || program.computed(norm->bias) ? nullptr : norm;
}

// Whether the channels of a batch norm behind it are the outputs of a product.
template <class Payload>
bool gives_channels(const Rewriting& program, const Primitive& p) {
  return std::is_same_v<Payload, ConvolutionPayload> || program.plan.at(p.out).shape.size() == 2;
}

// Training.  linear or convolution, batch_norm => the same, the bias without a gradient
// A bias that only shifts what a batch norm centres again has derivative 0; summing it up would
// give rounding noise, which Adam turns into steps as large as the learning rate.
template <class Payload>
bool drop_bias_gradient(Rewriting& program, Primitive& p) {
  if (!p.is<Payload>() || !program.training()) return false;
  const Primitive* norm = program.only_user_of<BatchNormPayload>(p);
  bool& cancels = p.as<Payload>().bias_cancels;
  cancels =
      norm && norm->as<BatchNormPayload>().batch_statistics && gives_channels<Payload>(program, p);
  return cancels;
}

// Inference.  linear or convolution, batch_norm => the product with folded weights
template <class Payload>
bool fold_norm(Rewriting& program, Primitive& p) {
  if (!p.is<Payload>()) return false;
  Primitive* norm = fixed_norm(program, p);
  auto& own = p.as<Payload>();
  if (!norm || !gives_channels<Payload>(program, p) || own.transposed ||
      program.computed(p.weight) || program.computed(p.bias))
    return false;
  for (const bool weight : {true, false}) {
    TensorInfo info = program.plan.at(p.weight);
    info.name += weight ? " folded" : " folded bias";
    info.place = Place::arena;
    info.differentiable = false;
    if (!weight) info.shape = {info.shape[0]};
    (weight ? own.folded_weight : own.folded_bias) = program.plan.add(info);
  }
  own.norm = program.take(p, *norm);
  return true;
}

// Inference.  linear, max(x, 0) => linear+relu
bool relu_into_linear(Rewriting& program, Primitive& p) {
  return p.is<LinearPayload>() && !program.training() &&
         take_relu(program, p, p.as<LinearPayload>().relu);
}

bool is_sum(const Primitive& p) {
  if (!p.is<MapPayload>() || p.in.size() != 2) return false;
  const Expr::Node& node = p.as<MapPayload>().expr.node();
  return node.op == ScalarOp::add && node.inputs[0].node().op == ScalarOp::operand &&
         node.inputs[1].node().op == ScalarOp::operand &&
         node.inputs[0].node().operand != node.inputs[1].node().operand;
}

// Inference.  convolution, x + y => convolution+add, where y lies as x does and is known before
bool sum_into_convolution(Rewriting& program, Primitive& p) {
  if (!p.is<ConvolutionPayload>() || program.training()) return false;
  auto& own = p.as<ConvolutionPayload>();
  Plan& plan = program.plan;
  const auto& users = program.users(p.out);
  if (own.transposed || plan.root(p.out) != p.out || plan.at(p.out).pinned || users.size() != 1)
    return false;
  Primitive& sum = plan.primitives[users[0]];
  if (sum.removed || !is_sum(sum)) return false;
  const int other = sum.in[sum.in[0] == p.out ? 1 : 0];
  const TensorInfo &own_info = plan.at(p.out), &info = plan.at(other);
  if (info.layout != own_info.layout || info.shape != own_info.shape ||
      info.axes.rows != own_info.axes.rows || info.axes.lanes != own_info.axes.lanes)
    return false;
  for (auto at = static_cast<size_t>(&p - plan.primitives.data()); at < plan.primitives.size();
       ++at)
    if (const Primitive& later = plan.primitives[at];
        !later.removed && plan.root(later.out) == plan.root(other))
      return false;
  own.add = other;
  p.params.emplace_back("add", other);
  program.take(p, sum);
  return true;
}

// Inference.  convolution, limits of x (relu, relu6, clamp, hardtanh) => convolution+clamp
bool limits_into_convolution(Rewriting& program, Primitive& p) {
  if (!p.is<ConvolutionPayload>() || program.training()) return false;
  auto& own = p.as<ConvolutionPayload>();
  Primitive* user = own.transposed ? nullptr : program.only_user_of<MapPayload>(p);
  return user && take_limits(program, p, *user, own);
}

// Inference.  convolution, depthwise convolution, 1x1 convolution => convolution_bands, or without
// the first, where what lies between them does not fit into L2
bool convolutions_into_bands(Rewriting& program, Primitive& p) {
  constexpr size_t least = size_t{1} << 20;  // floats
  if (!p.is<ConvolutionPayload>() || program.training()) return false;
  Primitive* depthwise = program.only_maker_of<ConvolutionPayload>(p);
  if (!depthwise) return false;
  Primitive* first = program.only_maker_of<ConvolutionPayload>(*depthwise);
  return (first && join_into_bands(program.plan, {first, depthwise, &p}, least)) ||
         join_into_bands(program.plan, {depthwise, &p}, least);
}

// Inference.  gather, batch_norm, max(x, 0) => gather+batch_norm+relu
bool norm_into_gather(Rewriting& program, Primitive& p) {
  if (!p.is<GatherPayload>() || program.plan.at(p.out).shape.size() != 2) return false;
  Primitive* norm = fixed_norm(program, p);
  if (!norm) return false;
  auto& own = p.as<GatherPayload>();
  const int64_t features = program.plan.at(p.out).rows();
  own.scale = program.plan.scratch("scale", features);
  own.shift = program.plan.scratch("shift", features);
  own.norm = program.take(p, *norm);
  take_relu(program, p, own.relu);
  return true;
}

// Few samples.  gather, relayout => gather in that layout
// Most of each row would be padding otherwise.
bool relayout_into_gather(Rewriting& program, Primitive& p) {
  constexpr int64_t few = 8;
  if (!p.is<GatherPayload>() || program.plan.options.batch_size >= few) return false;
  Primitive* user = program.only_user_of<RelayoutPayload>(p);
  if (!user || p.as<GatherPayload>().norm >= 0) return false;
  if (program.plan.at(user->out).shape != program.plan.at(p.out).shape) return false;
  program.take(p, *user);
  return true;
}

// Inference.  gather, linear => gather+linear, where the layer is small
bool gather_into_linear(Rewriting& program, Primitive& p) {
  if (!p.is<GatherPayload>() || program.training()) return false;
  Primitive* user = program.only_user_of<LinearPayload>(p);
  if (!user) return false;
  const Shape &shape = program.plan.at(p.out).shape, &w = program.plan.at(user->weight).shape;
  auto& linear = user->as<LinearPayload>();
  if (shape.size() != 2 || !kernels::can_gather_linear(w[linear.transposed ? 1 : 0], shape[1]))
    return false;
  linear.gather = static_cast<int>(&p - program.plan.primitives.data());
  p.removed = true;
  return true;
}

// Inference.  gather+linear, linear => gather+linear+linear, where all of them stay in registers
bool linear_behind_gathered(Rewriting& program, Primitive& p) {
  if (!p.is<LinearPayload>() || program.training()) return false;
  Primitive* maker = program.only_maker_of<LinearPayload>(p);
  if (!maker || maker->as<LinearPayload>().gather < 0) return false;
  Plan& plan = program.plan;
  std::vector<int64_t> sizes;
  const Primitive* layer = &p;
  for (int before = static_cast<int>(maker - plan.primitives.data());;
       before = layer->as<LinearPayload>().before) {
    const Shape& w = plan.at(layer->weight).shape;  // [out, in]
    if (layer->as<LinearPayload>().transposed) return false;
    if (sizes.empty()) sizes.push_back(w[0]);
    sizes.insert(sizes.begin(), w[1]);
    if (before < 0) break;
    layer = &plan.primitives[static_cast<size_t>(before)];
  }
  if (plan.at(p.out).shape.size() != 2 || !kernels::layers_in_registers(sizes)) return false;
  auto& own = p.as<LinearPayload>();
  own.gather = maker->as<LinearPayload>().gather;
  own.before = static_cast<int>(maker - plan.primitives.data());
  p.in = maker->in;
  maker->removed = true;
  return true;
}

// batch_norm, max(x, 0) => batch_norm+relu; inference: any limits => batch_norm+clamp
bool limits_into_norm(Rewriting& program, Primitive& p) {
  Primitive* user = p.is<BatchNormPayload>() ? program.only_user_of<MapPayload>(p) : nullptr;
  return user && (!program.training() || is_relu(*user)) &&
         take_limits(program, p, *user, p.as<BatchNormPayload>());
}

// batch_norm, quantize => batch_norm+quantize, where it is straight-through and element-wise
bool quantizer_into_norm(Rewriting& program, Primitive& p) {
  Primitive* user = p.is<BatchNormPayload>() ? program.only_user_of<QuantizePayload>(p) : nullptr;
  if (!user) return false;
  const Quantizer* quantizer = user->as<QuantizePayload>().quantizer;
  if (!quantizer->elementwise || quantizer->gradient || user->weight >= 0) return false;
  p.stream = user->stream;
  p.as<BatchNormPayload>().out_quantizer = quantizer;
  program.take(p, *user);
  return true;
}

struct Rule {
  const char* name;
  bool (*apply)(Rewriting& program, Primitive& p);  // whether it did
};
// Their order matters: what joins a product first is computed first behind it.
constexpr Rule rules[] = {
    {"drop_bias_gradient of linear", drop_bias_gradient<LinearPayload>},
    {"drop_bias_gradient of convolution", drop_bias_gradient<ConvolutionPayload>},
    {"fold_norm into linear", fold_norm<LinearPayload>},
    {"fold_norm into convolution", fold_norm<ConvolutionPayload>},
    {"relu_into_linear", relu_into_linear},
    {"sum_into_convolution", sum_into_convolution},
    {"limits_into_convolution", limits_into_convolution},
    {"convolutions_into_bands", convolutions_into_bands},
    {"norm_into_gather", norm_into_gather},
    {"relayout_into_gather", relayout_into_gather},
    {"gather_into_linear", gather_into_linear},
    {"linear_behind_gathered", linear_behind_gathered},
    {"limits_into_norm", limits_into_norm},
    {"quantizer_into_norm", quantizer_into_norm},
};

// What no output, kept node or gradient needs.
void remove_unused(Plan& plan) {
  std::vector<bool> needed(plan.tensors.size(), false);
  const auto need = [&](int tensor) {
    if (tensor >= 0) needed[static_cast<size_t>(plan.root(tensor))] = true;
  };
  for (size_t t = 0; t < plan.tensors.size(); ++t)
    if (plan.tensors[t].pinned) need(static_cast<int>(t));
  for (size_t i = plan.primitives.size(); i-- > 0;) {
    Primitive& p = plan.primitives[i];
    if (!needed[static_cast<size_t>(plan.root(p.out))]) p.removed = true;
    if (p.removed) continue;
    for (const int tensor : p.in) need(tensor);
    for (const auto& [name, tensor] : p.params) need(tensor);
    need(p.weight);
    need(p.bias);
  }
  std::erase_if(plan.primitives, [](const Primitive& p) { return p.removed; });
}

}  // namespace

void fuse(Plan& plan) {
  remove_unused(plan);
  Rewriting program(plan);
  for (size_t i = 0; i < plan.primitives.size(); ++i)
    for (const Rule& rule : rules)
      if (!plan.primitives[i].removed && rule.apply(program, plan.primitives[i]))
        plan.fused.emplace_back(rule.name);
}

std::vector<std::string> fusion_rules() {
  std::vector<std::string> names;
  for (const Rule& rule : rules) names.emplace_back(rule.name);
  return names;
}

}  // namespace mase::engine
