// SPDX-License-Identifier: Apache-2.0
#include "mase/train/weight_update.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "mase/engine/kernels/optimizer.h"

namespace mase {

WeightUpdate::WeightUpdate(Program& program, const TrainOptions& options)
    : optimizer_(options.optimizer, options.optimizer_arguments, program.parameter_memory().size()),
      accumulate_(options.accumulate),
      clip_(options.clip),
      clip_values_(options.clip_values) {
  for (const ParameterView& parameter : program.parameters()) masked_ |= !parameter.mask.empty();
  apply_masks(program, true);
}

// Gradients of pruned weights are removed before norms and updates see them.
void WeightUpdate::apply_masks(Program& program, bool to_values) const {
  if (!masked_) return;
  for (ParameterView& parameter : program.parameters())
    for (size_t i = 0; i < parameter.mask.size(); ++i)
      (to_values ? parameter.value : parameter.gradient)[i] *= parameter.mask[i];
}

void WeightUpdate::clip(Program& program) const {
  if (clip_ <= 0) return;
  const std::span<float> gradients = program.gradient_memory();
  if (clip_values_) {
    const float limit = static_cast<float>(clip_);
    for (float& g : gradients) g = std::min(std::max(g, -limit), limit);
    return;
  }
  const double norm = std::sqrt(kernels::sum_of_squares(gradients));
  const double factor = clip_ / (norm + 1e-6);
  if (factor < 1) kernels::scale(gradients, static_cast<float>(factor));
}

void WeightUpdate::average_gradients(Program& program) const {
  if (accumulate_ > 1)
    kernels::scale(program.gradient_memory(), 1.0f / static_cast<float>(accumulate_));
}

void WeightUpdate::step(Program& program, double learning_rate) {
  apply_masks(program, false);
  clip(program);
  optimizer_.step(program.parameter_memory(), program.gradient_memory(), learning_rate);
  apply_masks(program, true);
  program.parameters_changed();
}

}  // namespace mase
