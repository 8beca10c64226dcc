// SPDX-License-Identifier: Apache-2.0
// Rewrites of the primitive list that save sweeps over memory:
//   batch_norm, max(x, 0)          => batch_norm+relu
//   batch_norm+relu, quantize      => batch_norm+relu+quantize    (straight-through, element-wise)
//   linear or convolution, batch_norm (inference) => the same with folded weights
//   gather, batch_norm (inference) => gather+batch_norm
//   linear or convolution, max(x, 0) (inference) => linear+relu
//   gather, linear (inference)     => gather+linear               (small layers)
//   linear or convolution, batch_norm (training) => no gradient of the bias
//   gather, relayout (few samples) => gather in that layout
#include <algorithm>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"

namespace mase::engine {
namespace {

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
    const bool to_image = std::is_same_v<Payload, ConvolutionPayload> && own.transposed;
    if (!to_image) take_relu(p, own.relu);
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
