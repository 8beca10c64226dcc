// SPDX-License-Identifier: Apache-2.0
// Comparisons as expressions of "less": 1 where they hold, else 0. Nothing holds for NaN but "not
// equal".
#pragma once

#include <limits>

#include "mase/ir/expr.h"

namespace mase {

inline Expr is_number(const Expr& x) {
  const double infinity = std::numeric_limits<double>::infinity();
  return max(less(x, infinity), less(-infinity, x));
}

inline Expr equal(const Expr& a, const Expr& b) {
  return is_number(a) * is_number(b) * (1.0 - less(a, b)) * (1.0 - less(b, a));
}

}  // namespace mase
