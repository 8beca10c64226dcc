// SPDX-License-Identifier: Apache-2.0
// Magnitude: the smallest weights go first; of channels and blocks the smallest sum.
#include <cmath>

#include "mase/passes/criterion.h"

namespace mase::l1_norm_criterion {
namespace {

std::vector<double> importance(const CriterionProblem& problem) {
  std::vector<double> result;
  for (const float value : problem.weight.values<float>())
    result.push_back(std::fabs(static_cast<double>(value)));
  return result;
}

const Register<CriterionRecord> registered{{
    .name = "l1-norm",
    .aliases = {"l1", "magnitude"},
    .summary = "the smallest magnitudes",
    .importance = importance,
}};

}  // namespace
}  // namespace mase::l1_norm_criterion
