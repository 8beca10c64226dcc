// SPDX-License-Identifier: Apache-2.0
// What one edge of a table_linear is: the sum of hat functions over evenly spaced knots, and its
// value as a whole number of steps. Training, evaluation and hardware all use these two functions.
#pragma once

#include <cstdint>

#include "mase/base/value.h"

namespace mase {

struct TableEdges {
  int64_t in = 0, out = 0, knots = 2;
  int input_width = 6, input_frac = 3, output_frac = 4;
  bool rounded = false;

  explicit TableEdges(const Value& attributes);
  double low() const;   // the least input that a table has an entry for
  double high() const;  // the largest one

  // Which knot stands at or below x, and how far x is on the way to the next.
  struct Place {
    int64_t knot;
    double share;
    bool inside;  // else the input is beyond the table, which ends flat
  };
  Place place(double x) const;
  // The input's nearest code, halves up, within the width: as a number.
  double rounded_input(double x) const;
  // floor(sum of hats * 2^output_frac + 1/2) of an input that is rounded.
  double output_code(const double* heights, double x) const;
};

}  // namespace mase
