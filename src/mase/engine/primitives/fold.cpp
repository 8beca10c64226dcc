// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/fold.h"

#include <cmath>

namespace mase::engine {

Factors factors_of(Plan& plan, const Primitive& p) {
  Factors factors{p.weight, p.bias, p.epilogue};
  const auto* norm = p.epilogue.find<ScaleShiftStage>();
  if (!norm) return factors;
  const bool first = std::holds_alternative<ScaleShiftStage>(p.epilogue.stages.front());
  MASE_CHECK(first, "a batch norm behind other stages cannot be in the weights");
  factors.rest.stages.erase(factors.rest.stages.begin());
  const int64_t out = plan.at(p.out).shape[1];
  const int64_t in = p.weight >= 0 && out > 0 ? element_count(plan.at(p.weight).shape) / out : 1;
  factors.weight = plan.scratch("folded weight", out * in);
  factors.bias = plan.scratch("folded bias", out);
  const ScaleShiftStage own = *norm;
  plan.prepare.push_back(make_step(
      "fold_batch_norm", "", {own.mean, own.variance, p.weight, p.bias, own.weight, own.bias},
      {factors.weight, factors.bias},
      [=](const Run&, const float* mean, const float* var, const float* w, const float* b,
          const float* nw, const float* nb, float* to, float* bias) {
        for (int64_t o = 0; o < out; ++o) {
          const double scale = (nw ? nw[o] : 1.0) / std::sqrt(var[o] + own.eps);
          for (int64_t i = o * in; i < (o + 1) * in; ++i)
            to[i] = static_cast<float>((w ? w[i] : 1.0) * scale);
          bias[o] = static_cast<float>(((b ? b[o] : 0.0) - mean[o]) * scale + (nb ? nb[o] : 0.0));
        }
      }));
  return factors;
}

bool has_plain_weights(const Plan& plan, const Primitive& p) {
  const auto computed = [&](int tensor) {
    return tensor >= 0 && plan.at(tensor).place == Place::arena;
  };
  return !computed(p.weight) && !computed(p.bias);
}

}  // namespace mase::engine
