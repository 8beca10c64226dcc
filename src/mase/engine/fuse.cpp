// SPDX-License-Identifier: Apache-2.0
// Rewrites of the primitive list that save sweeps over memory:
//   batch_norm, max(x, 0)          => batch_norm+relu
//   batch_norm+relu, quantize      => batch_norm+relu+quantize    (straight-through, element-wise)
//   linear or convolution, batch_norm (inference) => the same with folded weights
//   gather, batch_norm (inference) => gather+batch_norm
//   linear, max(x, 0) (inference)  => linear+relu
//   convolution, x + y (inference) => convolution+add             (y computed before it)
//   convolution, limits of x (inference) => convolution+clamp     (relu, relu6, clamp, hardtanh)
//   gather, linear (inference)     => gather+linear               (small layers)
//   linear or convolution, batch_norm (training) => no gradient of the bias
//   gather, relayout (few samples) => gather in that layout
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"

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

class Fuser {
 public:
  explicit Fuser(Plan& plan) : plan_(plan), users_(plan.tensors.size()) {
    for (size_t i = 0; i < plan_.primitives.size(); ++i) {
      const Primitive& p = plan_.primitives[i];
      const auto use = [&](int tensor) {
        if (tensor >= 0) users_[static_cast<size_t>(plan_.root(tensor))].push_back(i);
      };
      for (const int tensor : p.in) use(tensor);
      for (const auto& [name, tensor] : p.params) use(tensor);
      for (const int tensor : {p.weight, p.bias}) use(tensor);
    }
  }

  void run() {
    for (size_t i = 0; i < plan_.primitives.size(); ++i) {
      Primitive& p = plan_.primitives[i];
      if (p.removed) continue;
      if (p.is<LinearPayload>()) fuse_product<LinearPayload>(p);
      if (p.is<ConvolutionPayload>()) fuse_product<ConvolutionPayload>(p);
      if (p.is<GatherPayload>()) fuse_gather(i);
      if (p.is<BatchNormPayload>()) {
        take_relu(p, p.as<BatchNormPayload>().relu);
        take_quantizer(p);
      }
    }
  }

 private:
  // The only reader of a result nobody else may look at.
  Primitive* only_user(int tensor) {
    const int root = plan_.root(tensor);
    if (root != tensor || plan_.at(tensor).pinned) return nullptr;
    const auto& users = users_[static_cast<size_t>(root)];
    if (users.size() != 1) return nullptr;
    Primitive& user = plan_.primitives[users[0]];
    return user.in.size() == 1 && user.in[0] == tensor ? &user : nullptr;
  }

  static bool is_relu(const Primitive& p) {
    if (!p.is<MapPayload>()) return false;
    const Expr::Node& node = p.as<MapPayload>().expr.node();
    return node.op == ScalarOp::max && node.inputs[0].node().op == ScalarOp::operand &&
           node.inputs[1].is_constant(0);
  }

  void take_relu(Primitive& p, bool& relu) {
    Primitive* user = only_user(p.out);
    if (!user || user->removed || !is_relu(*user)) return;
    relu = true;
    p.out = user->out;
    user->removed = true;
  }

  void take_quantizer(Primitive& p) {
    Primitive* user = only_user(p.out);
    if (!user || user->removed || !user->is<QuantizePayload>()) return;
    const Quantizer* quantizer = user->as<QuantizePayload>().quantizer;
    if (!quantizer->elementwise || quantizer->gradient || user->weight >= 0) return;
    // A product that rounds its operands anew for the backward pass wants them unrounded.
    for (const size_t reader : users_[static_cast<size_t>(plan_.root(user->out))]) {
      const Primitive& product = plan_.primitives[reader];
      if (product.is<LinearPayload>() && product.as<LinearPayload>().backward) return;
    }
    p.stream = user->stream;
    p.as<BatchNormPayload>().out_quantizer = quantizer;
    p.out = user->out;
    user->removed = true;
  }

  // Whether the channels of a batch norm behind it are the outputs of a product.
  template <class Payload>
  bool gives_channels(const Primitive& p) const {
    return std::is_same_v<Payload, ConvolutionPayload> || plan_.at(p.out).shape.size() == 2;
  }

  template <class Payload>
  void fuse_product(Primitive& p) {
    auto& own = p.as<Payload>();
    if (plan_.options.training) {
      // A bias that only shifts what a batch norm centres again has derivative 0; summing it up
      // would give rounding noise, which Adam turns into steps as large as the learning rate.
      const Primitive* norm = only_user(p.out);
      own.bias_cancels = norm && norm->is<BatchNormPayload>() &&
                         norm->as<BatchNormPayload>().batch_statistics &&
                         gives_channels<Payload>(p);
      return;
    }
    if (Primitive* norm = fixed_norm(p.out); norm && gives_channels<Payload>(p) &&
                                             !own.transposed && !computed(p.weight) &&
                                             !computed(p.bias)) {
      for (const bool weight : {true, false}) {
        TensorInfo info = plan_.at(p.weight);
        info.name += weight ? " folded" : " folded bias";
        info.place = Place::arena;
        info.differentiable = false;
        if (!weight) info.shape = {info.shape[0]};
        (weight ? own.folded_weight : own.folded_bias) = plan_.add(info);
      }
      own.norm = take_norm(p, *norm);
    }
    if constexpr (std::is_same_v<Payload, LinearPayload>) {
      take_relu(p, own.relu);
    } else if (!own.transposed) {
      take_sum(p, own);
      take_limits(p, own);
    }
  }

  // The other operand of the sum that alone reads the result, if it lies as the result does and is
  // known when the convolution runs.
  void take_sum(Primitive& p, ConvolutionPayload& own) {
    const auto& users = users_[static_cast<size_t>(p.out)];
    if (plan_.root(p.out) != p.out || plan_.at(p.out).pinned || users.size() != 1) return;
    Primitive& sum = plan_.primitives[users[0]];
    if (sum.removed || !is_sum(sum)) return;
    const int other = sum.in[sum.in[0] == p.out ? 1 : 0];
    const TensorInfo &own_info = plan_.at(p.out), &info = plan_.at(other);
    if (info.layout != own_info.layout || info.shape != own_info.shape ||
        info.axes.rows != own_info.axes.rows || info.axes.lanes != own_info.axes.lanes)
      return;
    for (const Primitive* later = &p; later != &*plan_.primitives.end(); ++later)
      if (!later->removed && plan_.root(later->out) == plan_.root(other)) return;
    own.add = other;
    p.params.emplace_back("add", other);
    p.out = sum.out;
    sum.removed = true;
  }

  static bool is_sum(const Primitive& p) {
    if (!p.is<MapPayload>() || p.in.size() != 2) return false;
    const Expr::Node& node = p.as<MapPayload>().expr.node();
    return node.op == ScalarOp::add && node.inputs[0].node().op == ScalarOp::operand &&
           node.inputs[1].node().op == ScalarOp::operand &&
           node.inputs[0].node().operand != node.inputs[1].node().operand;
  }

  void take_limits(Primitive& p, ConvolutionPayload& own) {
    Primitive* user = only_user(p.out);
    if (!user || user->removed || !user->is<MapPayload>()) return;
    if (plan_.at(user->out).shape != plan_.at(p.out).shape) return;  // repeated as well
    const std::optional<Limits> limits = limits_of(user->as<MapPayload>().expr);
    if (!limits) return;
    own.low = static_cast<float>(limits->low);
    own.high = static_cast<float>(limits->high);
    p.out = user->out;
    user->removed = true;
  }

  // The batch norm behind a result, if it is a fixed scale and shift of each channel and all its
  // parameters are plain ones: a rounded parameter must stay what it is.
  Primitive* fixed_norm(int tensor) {
    Primitive* norm = plan_.options.fold_batch_norm ? only_user(tensor) : nullptr;
    if (!norm || norm->removed || !norm->is<BatchNormPayload>()) return nullptr;
    if (norm->as<BatchNormPayload>().batch_statistics) return nullptr;
    return computed(norm->weight) || computed(norm->bias) ? nullptr : norm;
  }

  bool computed(int tensor) const { return tensor >= 0 && plan_.at(tensor).place == Place::arena; }

  int take_norm(Primitive& p, Primitive& norm) {
    p.out = norm.out;
    norm.removed = true;
    return static_cast<int>(&norm - plan_.primitives.data());
  }

  void fuse_gather(size_t index) {
    Primitive& p = plan_.primitives[index];
    auto& own = p.as<GatherPayload>();
    const bool training = plan_.options.training;
    if (Primitive* norm = training ? nullptr : fixed_norm(p.out);
        norm && plan_.at(p.out).shape.size() == 2) {
      const int64_t features = plan_.at(p.out).rows();
      own.scale = plan_.scratch("scale", features);
      own.shift = plan_.scratch("shift", features);
      own.norm = take_norm(p, *norm);
      take_relu(p, own.relu);
    }
    Primitive* user = only_user(p.out);
    if (!user || user->removed) return;
    // With few samples most of each row would be padding.
    constexpr int64_t few = 8;
    if (user->is<RelayoutPayload>() && plan_.options.batch_size < few && own.norm < 0 &&
        plan_.at(user->out).shape == plan_.at(p.out).shape) {
      p.out = user->out;
      user->removed = true;
    } else if (!training && user->is<LinearPayload>()) {
      const Shape& shape = plan_.at(p.out).shape;
      const Shape& w = plan_.at(user->weight).shape;
      auto& linear = user->as<LinearPayload>();
      if (shape.size() != 2 || !kernels::can_gather_linear(w[linear.transposed ? 1 : 0], shape[1]))
        return;
      linear.gather = static_cast<int>(index);
      p.removed = true;
    }
  }

  Plan& plan_;
  std::vector<std::vector<size_t>> users_;
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
  Fuser(plan).run();
}

}  // namespace mase::engine
