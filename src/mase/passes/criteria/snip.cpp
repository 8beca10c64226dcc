// SPDX-License-Identifier: Apache-2.0
// SNIP (Lee et al., "SNIP: single-shot network pruning based on connection sensitivity", 2019): how
// much the loss changes when a weight goes, to first order.
#include <cmath>

#include "mase/passes/criterion.h"

namespace mase::snip_criterion {
namespace {

std::vector<double> importance(const CriterionProblem& problem) {
  std::vector<double> result;
  const float* gradient = problem.gradient->data<float>();
  for (const float value : problem.weight.values<float>())
    result.push_back(std::fabs(static_cast<double>(value) * *gradient++));
  return result;
}

const Register<CriterionRecord> registered{{
    .name = "snip",
    .summary = "the smallest weight times gradient of the loss",
    .needs_gradients = true,
    .importance = importance,
}};

}  // namespace
}  // namespace mase::snip_criterion
