// SPDX-License-Identifier: Apache-2.0
// GPTQ's recursion (Frantar et al., "GPTQ: accurate post-training quantization for generative
// pre-trained transformers", 2023) in double precision, on any grid: columns are rounded one by
// one, and the error of each is made good by those that are still to come, as far as the inputs'
// second moments say. With a rule that zeroes instead of rounding it is SparseGPT.
#pragma once

#include <functional>

#include "mase/passes/dense.h"

namespace mase {

struct GptqOptions {
  bool activation_order = true;  // columns by descending diagonal
  double damping = 0.01;         // times the mean diagonal, added to it
  int64_t block = 128;           // columns whose feedback to later ones is added at once
  int threads = 1;
};

// Called when the first column of a run of `block` columns of this order is reached, with the
// weights as they are then: rules that look ahead (groups' scales, masks) use it. Optional.
struct GptqRule {
  // The value that stands for `value` at (row, column); called from several threads.
  std::function<double(int64_t row, int64_t column, double value)> round;
  std::function<void(int64_t position, int64_t column, const std::vector<double>& weight)> begin =
      {};
  // The same for runs: before the columns `order[first .. last)` are worked on. `inverse_diagonal`
  // has the diagonal of U by position.
  std::function<void(int64_t first, int64_t last, const std::vector<int64_t>& order,
                     const std::vector<double>& weight, const std::vector<double>& diagonal)>
      begin_block = {};
};

// `weight`: rows x columns, replaced by the result; `hessian`: columns x columns. False if the
// damped matrix is not positive definite, and nothing is changed.
bool gptq_solve(std::vector<double>& weight, int64_t rows, int64_t columns, const Matrix& hessian,
                const GptqRule& rule, const GptqOptions& options);

// The order in which columns are worked on.
std::vector<int64_t> gptq_order(const Matrix& hessian, int64_t columns, bool activation_order);

}  // namespace mase
