// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/fold.h"

#include <cmath>

#include "mase/engine/payloads.h"

namespace mase::engine {

Step prepare_folded(Plan& plan, const Primitive& product, int norm_index, int folded_weight,
                    int folded_bias) {
  const Primitive& norm = plan.primitives[static_cast<size_t>(norm_index)];
  const auto& own = norm.as<BatchNormPayload>();
  const int w = product.weight, b = product.bias, nw = norm.weight, nb = norm.bias,
            mean = own.running_mean, var = own.running_var;
  const int64_t out = plan.at(w).shape[0];
  const int64_t in = out > 0 ? element_count(plan.at(w).shape) / out : 0;
  const double eps = own.eps;
  Step step{"fold_batch_norm", "", {w, mean, var}, {folded_weight, folded_bias}};
  step.read({b, nw, nb});
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, w = memory[w], b = memory.at(b), nw = memory.at(nw), nb = memory.at(nb),
            mean = memory[mean], var = memory[var], to = memory[folded_weight],
            bias = memory[folded_bias]](const Run&) {
      for (int64_t o = 0; o < out; ++o) {
        const double scale = (nw ? nw[o] : 1.0) / std::sqrt(var[o] + eps);
        for (int64_t i = 0; i < in; ++i) to[o * in + i] = static_cast<float>(w[o * in + i] * scale);
        bias[o] = static_cast<float>(((b ? b[o] : 0.0) - mean[o]) * scale + (nb ? nb[o] : 0.0));
      }
    };
  };
  return step;
}

}  // namespace mase::engine
