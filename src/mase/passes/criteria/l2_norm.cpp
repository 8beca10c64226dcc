// SPDX-License-Identifier: Apache-2.0
// Squares: as magnitudes for single weights; of channels and blocks the smallest sum of squares.
#include "mase/passes/criterion.h"

namespace mase::l2_norm_criterion {
namespace {

std::vector<double> importance(const CriterionProblem& problem) {
  std::vector<double> result;
  for (const float value : problem.weight.values<float>())
    result.push_back(static_cast<double>(value) * value);
  return result;
}

const Register<CriterionRecord> registered{{
    .name = "l2-norm",
    .aliases = {"l2"},
    .summary = "the smallest squares",
    .importance = importance,
}};

}  // namespace
}  // namespace mase::l2_norm_criterion
