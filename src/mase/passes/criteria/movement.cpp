// SPDX-License-Identifier: Apache-2.0
// Movement (Sanh et al., "Movement pruning: adaptive sparsity by fine-tuning", 2020): weights that
// training makes smaller go first, however large they still are: the sum over steps of training of
// minus weight times gradient.
#include "mase/passes/criterion.h"

namespace mase::movement_criterion {
namespace {

std::vector<double> importance(const CriterionProblem& problem) {
  std::vector<double> result;
  for (const float value : problem.movement->values<float>()) result.push_back(value);
  return result;
}

const Register<CriterionRecord> registered{{
    .name = "movement",
    .summary = "weights that training makes smaller",
    .needs_movement = true,
    .importance = importance,
}};

}  // namespace
}  // namespace mase::movement_criterion
