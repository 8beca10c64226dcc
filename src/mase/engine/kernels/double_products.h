// SPDX-License-Identifier: Apache-2.0
// Products of matrices in double precision, for what is solved and not run: second moments of
// activations, their factors, errors of roundings. Sums have one order, whatever the number of
// threads.
#pragma once

#include <cstdint>

namespace mase::kernels {

// An operand: element (i, j) lies at i * row + j * column of one of the two. Products of float32
// numbers are exact in double precision.
struct DoubleOperand {
  const double* doubles = nullptr;
  const float* floats = nullptr;
  int64_t row = 0, column = 1;
};

// out(i, j) = factor * sum over k of a(i, k) b(k, j), added to what is there if `accumulate`.
struct DoubleProduct {
  int64_t rows = 0, columns = 0, inner = 0;
  DoubleOperand a, b;
  double* out = nullptr;
  int64_t out_row = 0;
  double factor = 1;
  bool accumulate = false;
  bool upper = false;  // what lies below the diagonal is not needed, and may be anything
};
void multiply_doubles(const DoubleProduct& product, int threads);

namespace reference {
void multiply_doubles(const DoubleProduct& product);
}

}  // namespace mase::kernels
