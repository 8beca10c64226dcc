// SPDX-License-Identifier: Apache-2.0
// Any weight: what other criteria must be better than.
#include "mase/passes/criterion.h"

namespace mase::random_criterion {
namespace {

std::vector<double> importance(const CriterionProblem& problem) {
  std::vector<double> result(static_cast<size_t>(problem.weight.numel()));
  for (double& value : result) value = problem.random.uniform();
  return result;
}

const Register<CriterionRecord> registered{{
    .name = "random",
    .summary = "any",
    .importance = importance,
}};

}  // namespace
}  // namespace mase::random_criterion
