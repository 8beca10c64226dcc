// SPDX-License-Identifier: Apache-2.0
// Rewrites of the primitive list that save sweeps over memory:
//   batch_norm, max(x, 0)          => batch_norm+relu
//   batch_norm+relu, quantize      => batch_norm+relu+quantize    (straight-through, element-wise)
//   linear, batch_norm (inference) => linear with folded weights
//   gather, batch_norm (inference) => gather+batch_norm
//   linear, max(x, 0) (inference)  => linear+relu
//   gather, linear (inference)     => gather+linear               (small layers)
//   linear, batch_norm (training)  => no gradient of the linear's bias
#include <algorithm>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/plan.h"

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
      if (p.kind == PrimitiveKind::linear && !plan_.options.training) fold(i);
      if (p.kind == PrimitiveKind::gather && !plan_.options.training) normalize_input(i);
      if (p.kind == PrimitiveKind::linear && plan_.options.training) drop_bias_gradient(i);
      if (p.kind == PrimitiveKind::batch_norm || p.folded >= 0 ||
          (p.kind == PrimitiveKind::linear && !plan_.options.training))
        take_relu(i);
      if (p.kind == PrimitiveKind::gather && !plan_.options.training) join_linear(i);
      if (p.kind == PrimitiveKind::batch_norm) take_quantizer(i);
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
    if (p.kind != PrimitiveKind::map || p.expr.node().op != ScalarOp::max) return false;
    const Expr::Node& node = p.expr.node();
    return node.inputs[0].node().op == ScalarOp::operand && node.inputs[1].is_constant(0);
  }

  void take_relu(size_t index) {
    Primitive& p = plan_.primitives[index];
    Primitive* user = only_user(p.out);
    if (!user || user->removed || !is_relu(*user)) return;
    p.relu = true;
    p.out = user->out;
    user->removed = true;
  }

  void take_quantizer(size_t index) {
    Primitive& p = plan_.primitives[index];
    Primitive* user = only_user(p.out);
    if (!user || user->removed || user->kind != PrimitiveKind::quantize) return;
    if (!user->quantizer->elementwise || user->quantizer->gradient || user->weight >= 0) return;
    // A product that rounds its operands anew for the backward pass wants them unrounded.
    for (const size_t reader : users_[static_cast<size_t>(plan_.root(user->out))])
      if (plan_.primitives[reader].backward) return;
    p.stream = user->stream;
    p.out_quantizer = user->quantizer;
    p.out = user->out;
    user->removed = true;
  }

  // A bias that only shifts what a batch norm centres again has derivative 0; summing it up would
  // give rounding noise, which Adam turns into steps as large as the learning rate.
  void drop_bias_gradient(size_t index) {
    Primitive& p = plan_.primitives[index];
    const Primitive* norm = only_user(p.out);
    p.bias_cancels = norm && norm->kind == PrimitiveKind::batch_norm && norm->batch_statistics &&
                     plan_.at(p.out).shape.size() == 2;
  }

  // The batch norm behind a result, if it is a fixed scale and shift of each feature and all its
  // parameters are plain ones: a rounded parameter must stay what it is.
  Primitive* fixed_norm(int tensor) {
    Primitive* norm = plan_.options.fold_batch_norm ? only_user(tensor) : nullptr;
    if (!norm || norm->removed || norm->kind != PrimitiveKind::batch_norm) return nullptr;
    if (norm->batch_statistics || plan_.at(tensor).shape.size() != 2) return nullptr;
    return computed(norm->weight) || computed(norm->bias) ? nullptr : norm;
  }

  bool computed(int tensor) const { return tensor >= 0 && plan_.at(tensor).place == Place::arena; }

  void take_norm(Primitive& p, Primitive& norm) {
    p.folded = static_cast<int>(&norm - plan_.primitives.data());
    p.out = norm.out;
    norm.removed = true;
  }

  void fold(size_t index) {
    Primitive& p = plan_.primitives[index];
    Primitive* norm = fixed_norm(p.out);
    if (!norm || p.transposed || computed(p.weight) || computed(p.bias)) return;
    for (const bool weight : {true, false}) {
      TensorInfo info = plan_.at(p.weight);
      info.name += weight ? " folded" : " folded bias";
      info.place = Place::arena;
      info.differentiable = false;
      if (!weight) info.shape = {info.shape[0]};
      (weight ? p.folded_weight : p.folded_bias) = plan_.add(info);
    }
    take_norm(p, *norm);
  }

  void normalize_input(size_t index) {
    Primitive& p = plan_.primitives[index];
    Primitive* norm = fixed_norm(p.out);
    if (!norm) return;
    const int64_t features = plan_.at(p.out).rows();
    p.folded_weight = plan_.scratch("scale", features);
    p.folded_bias = plan_.scratch("shift", features);
    take_norm(p, *norm);
  }

  void join_linear(size_t index) {
    Primitive& p = plan_.primitives[index];
    Primitive* linear = only_user(p.out);
    if (!linear || linear->removed || linear->kind != PrimitiveKind::linear) return;
    const Shape& shape = plan_.at(p.out).shape;
    const Shape& w = plan_.at(linear->weight).shape;
    if (shape.size() != 2 || !kernels::can_gather_linear(w[linear->transposed ? 1 : 0], shape[1]))
      return;
    linear->gather = static_cast<int>(index);
    p.removed = true;
  }

  Plan& plan_;
  std::vector<std::vector<size_t>> users_;
};

}  // namespace

void fuse(Plan& plan) { Fuser(plan).run(); }

}  // namespace mase::engine
