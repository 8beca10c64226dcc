// SPDX-License-Identifier: Apache-2.0
// Wanda (Sun et al., "A simple and effective pruning approach for large language models", 2024): a
// weight times the norm of the input it multiplies. Chosen row by row: each output loses its share.
#include <algorithm>
#include <cmath>

#include "mase/passes/criterion.h"

namespace mase::wanda_criterion {
namespace {

std::vector<double> importance(const CriterionProblem& problem) {
  const ProductInputs& inputs = *problem.inputs;
  const int64_t n = inputs.columns, rows = problem.weight.numel() / std::max<int64_t>(1, n);
  std::vector<double> result;
  for (int64_t r = 0; r < rows; ++r) {
    const Matrix& hessian = inputs.hessians[static_cast<size_t>(r * inputs.groups / rows)];
    for (int64_t c = 0; c < n; ++c)
      result.push_back(std::fabs(static_cast<double>(problem.weight.data<float>()[r * n + c])) *
                       std::sqrt(hessian[static_cast<size_t>(c * n + c)]));
  }
  return result;
}

const Register<CriterionRecord> registered{{
    .name = "wanda",
    .summary = "the smallest weight times the norm of its input",
    .needs_inputs = true,
    .by_rows = true,
    .importance = importance,
}};

}  // namespace
}  // namespace mase::wanda_criterion
