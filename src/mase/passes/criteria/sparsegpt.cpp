// SPDX-License-Identifier: Apache-2.0
// SparseGPT (Frantar and Alistarh, "SparseGPT: massive language models can be accurately pruned in
// one-shot", 2023): columns are gone through as gptq does, weights whose removal costs least go,
// and those still to come make good what that changed in the outputs.
#include "mase/passes/criterion.h"
#include "mase/passes/gptq_solver.h"

namespace mase::sparsegpt_criterion {
namespace {

PrunedWeight solve(const CriterionProblem& problem, const Sparsity& sparsity) {
  const ProductInputs& inputs = *problem.inputs;
  const int64_t n = inputs.columns, rows = problem.weight.dim(0), each = rows / inputs.groups;
  PrunedWeight result{problem.weight, Tensor(problem.weight.shape())};
  float *out = result.weight.mutable_data<float>(), *mask = result.mask.mutable_data<float>();
  std::fill_n(mask, result.mask.numel(), 1.0f);
  // n of m lie beside each other, so columns keep their order and no block cuts an m in two.
  GptqOptions options{.activation_order = false};
  if (sparsity.m > 0) options.block = std::max<int64_t>(1, 128 / sparsity.m) * sparsity.m;
  for (int64_t g = 0; g < inputs.groups; ++g) {
    const int64_t begin = g * each * n;
    std::vector<double> work(problem.weight.data<float>() + begin,
                             problem.weight.data<float>() + begin + each * n);
    GptqRule rule;
    rule.begin_block = [&](int64_t first, int64_t last, const std::vector<int64_t>&,
                           const std::vector<double>& weight, const std::vector<double>& diagonal) {
      const int64_t width = last - first;
      std::vector<double> cost;
      for (int64_t r = 0; r < each; ++r)
        for (int64_t c = first; c < last; ++c) {
          const double w =
              weight[static_cast<size_t>(r * n + c)] / diagonal[static_cast<size_t>(c)];
          cost.push_back(w * w);
        }
      for (const int64_t at : least_important(cost, sparsity, width))
        mask[begin + at / width * n + first + at % width] = 0;
    };
    rule.round = [&](int64_t row, int64_t column, double value) {
      return mask[begin + row * n + column] == 0 ? 0.0 : value;
    };
    if (!gptq_solve(work, each, n, inputs.hessians[static_cast<size_t>(g)], rule, options))
      return {{}, {}, "its inputs' second moments are singular"};
    for (size_t i = 0; i < work.size(); ++i)
      out[begin + static_cast<int64_t>(i)] = static_cast<float>(work[i]);
  }
  return result;
}

const Register<CriterionRecord> registered{{
    .name = "sparsegpt",
    .summary = "what costs least by the inputs' second moments, made good by the other weights",
    .needs_inputs = true,
    .solve = solve,
}};

}  // namespace
}  // namespace mase::sparsegpt_criterion
