// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/gptq_solver.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "mase/engine/kernels/double_products.h"
#include "mase/engine/kernels/parallel.h"

namespace mase {

std::vector<int64_t> gptq_order(const Matrix& hessian, int64_t columns, bool activation_order) {
  std::vector<int64_t> order(static_cast<size_t>(columns));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto diagonal = [&](int64_t i) {
    const double own = hessian[static_cast<size_t>(i * columns + i)];
    return own == 0 ? 1.0 : own;  // as a dead column counts below
  };
  if (activation_order)
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return diagonal(a) > diagonal(b); });
  return order;
}

bool gptq_solve(std::vector<double>& weight, int64_t rows, int64_t columns, const Matrix& hessian,
                const GptqRule& rule, const GptqOptions& options) {
  const std::vector<int64_t> order = gptq_order(hessian, columns, options.activation_order);
  const auto n = static_cast<size_t>(columns);
  Matrix factor(n * n);
  double mean = 0;
  std::vector<bool> dead(n, false);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      factor[i * n + j] = hessian[static_cast<size_t>(order[i] * columns + order[j])];
  for (size_t i = 0; i < n; ++i) {
    dead[i] = factor[i * n + i] == 0;
    if (dead[i]) factor[i * n + i] = 1;
    mean += factor[i * n + i] / static_cast<double>(n);
  }
  for (size_t i = 0; i < n; ++i) factor[i * n + i] += options.damping * mean;
  if (!upper_factor_of_inverse(factor, columns, options.threads)) return false;

  // By rows of weights, in the order of work.
  std::vector<double> work(weight.size()), errors;
  for (int64_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < n; ++c)
      work[static_cast<size_t>(r) * n + c] =
          dead[c] ? 0.0 : weight[static_cast<size_t>(r * columns + order[c])];
  std::vector<double> diagonal(n);
  for (size_t i = 0; i < n; ++i) diagonal[i] = factor[i * n + i];
  // What rules see: columns in their own places.
  std::vector<double> seen;
  const auto in_place = [&]() -> const std::vector<double>& {
    seen.resize(weight.size());
    for (int64_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < n; ++c)
        seen[static_cast<size_t>(r * columns + order[c])] = work[static_cast<size_t>(r) * n + c];
    return seen;
  };
  std::vector<double> result(work.size());
  for (int64_t first = 0; first < columns; first += options.block) {
    const int64_t last = std::min(columns, first + options.block);
    if (rule.begin_block) rule.begin_block(first, last, order, in_place(), diagonal);
    const auto width = static_cast<size_t>(last - first);
    // The reference takes scales of groups from weights without this block's own feedback.
    std::vector<double> local(static_cast<size_t>(rows) * width);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(work.begin() + static_cast<std::ptrdiff_t>(r * columns + first), width,
                  local.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(r) * width));
    errors.assign(local.size(), 0.0);
    const auto step = [&](int64_t r, size_t i) {
      const size_t position = static_cast<size_t>(first) + i;
      const double* up = factor.data() + position * n;
      double* row = local.data() + static_cast<size_t>(r) * width;
      const double rounded = rule.round(r, order[position], row[i]);
      const double error = (row[i] - rounded) / up[position];
      for (size_t j = i + 1; j < width; ++j) row[j] -= error * up[static_cast<size_t>(first) + j];
      errors[static_cast<size_t>(r) * width + i] = error;
      result[static_cast<size_t>(r) * n + position] = rounded;
    };
    // Rows know nothing of each other, but for rules that look at all of them on the way.
    if (rule.begin) {
      for (size_t i = 0; i < width; ++i) {
        const size_t position = static_cast<size_t>(first) + i;
        rule.begin(static_cast<int64_t>(position), order[position], in_place());
        for (int64_t r = 0; r < rows; ++r) step(r, i);
      }
    } else {
      kernels::for_each_piece(rows, options.threads, [&](int64_t r) {
        for (size_t i = 0; i < width; ++i) step(r, i);
      });
    }
    if (last < columns)
      kernels::multiply_doubles(
          {.rows = rows,
           .columns = columns - last,
           .inner = last - first,
           .a = {.doubles = errors.data(), .row = last - first},
           .b = {.doubles = factor.data() + first * columns + last, .row = columns},
           .out = work.data() + last,
           .out_row = columns,
           .factor = -1,
           .accumulate = true},
          options.threads);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < n; ++c)
      weight[static_cast<size_t>(r * columns + order[c])] = result[static_cast<size_t>(r) * n + c];
  return true;
}

}  // namespace mase
