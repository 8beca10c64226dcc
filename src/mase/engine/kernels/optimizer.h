// SPDX-License-Identifier: Apache-2.0
// The parameter updates of the optimisers as one vector sweep over a contiguous block (see
// Program::parameter_memory), with PyTorch's formulas. train/ decides which to call.
#pragma once

#include <cstdint>
#include <span>

namespace mase::kernels {

struct AdamUpdate {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // added to the gradient, or
  bool decoupled = false;   // AdamW: shrinks the value instead
  int64_t step = 1;         // of this update, from 1
};
// All spans are equally long. `mean` and `square` are exp_avg and exp_avg_sq.
void adam(std::span<float> value, std::span<const float> gradient, std::span<float> mean,
          std::span<float> square, const AdamUpdate& update);

struct SgdUpdate {
  double learning_rate = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  bool first = false;  // the momentum buffer starts as the gradient
};
void sgd(std::span<float> value, std::span<const float> gradient, std::span<float> momentum,
         const SgdUpdate& update);

// Sum of squares (gradient clipping by norm), in a fixed order.
double sum_of_squares(std::span<const float> values);
void scale(std::span<float> values, float factor);

namespace reference {
void adam(std::span<float> value, std::span<const float> gradient, std::span<float> mean,
          std::span<float> square, const AdamUpdate& update);
void sgd(std::span<float> value, std::span<const float> gradient, std::span<float> momentum,
         const SgdUpdate& update);
}  // namespace reference

}  // namespace mase::kernels
