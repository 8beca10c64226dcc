// SPDX-License-Identifier: Apache-2.0
// What one edge of a table_linear is: the sum of hat functions over evenly spaced knots, and its
// value as a whole number of steps. Training, evaluation and hardware all use these functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mase/base/value.h"

namespace mase {

// How an edge is rounded. It reads the top `bits` bits of its input's code; 0: it is a constant.
struct TableWidth {
  int bits = 0;
  int frac = 0;  // bits after the point of its values
};

struct TableEdges {
  int64_t in = 0, out = 0, knots = 2;
  int input_width = 6, input_frac = 3, output_frac = 4;
  bool rounded = false;
  bool wraps = false;  // inputs beyond the codes begin again at the other end

  explicit TableEdges(const Value& attributes);
  double low() const;   // the least input that a table has an entry for
  double high() const;  // the largest one
  int64_t codes() const { return int64_t{1} << input_width; }
  double value_of(int64_t code) const;  // from 0 for the least one

  // Which knot stands at or below x, and how far x is on the way to the next.
  struct Place {
    int64_t knot;
    double share;
    bool inside;  // else the input is beyond the table, which ends flat
  };
  Place place(double x) const;
  // The nearest code, halves up, from 0 for the least one; beyond them as overflow says.
  int64_t code_of(double x) const;
  // What the buffers edge_bits and edge_frac say, whatever somebody wrote there.
  TableWidth width(double bits, double frac) const;
  // The input in whose place all inputs are taken that share the code's top bits: their middle.
  double middle(int64_t code, int bits) const;
  // The straight line at x, heights by knot.
  template <class T>
  double line(const T* heights, double x) const {
    const Place p = place(x);
    return static_cast<double>(heights[p.knot]) * (1 - p.share) +
           static_cast<double>(heights[p.knot + 1]) * p.share;
  }
  // floor(line * 2^frac + 1/2) in the middle of the code's cell.
  template <class T>
  double entry(const T* heights, int64_t code, const TableWidth& width) const {
    return steps(line(heights, middle(code, width.bits)), width.frac);
  }
  // The slope that training takes for that of the table: of the chord between the cells on both
  // sides, of the line where nothing is rounded.
  template <class T>
  double slope(const T* heights, int64_t code, const TableWidth& width) const {
    if (width.bits == 0) return 0;
    const double cell = cell_width(width.bits), x = middle(code, width.bits);
    return (line(heights, x + cell) - line(heights, x - cell)) / (2 * cell);
  }
  // The same where an input that wraps is beyond the codes: of the chord to the end it left by.
  template <class T>
  double way_back(const T* heights, double x, int64_t code, const TableWidth& width) const {
    const double end = x < 0 ? low() : high();
    const double far = x < 0 ? std::min(x - end, -cell_width(input_width))
                             : std::max(x - end, cell_width(input_width));
    return (line(heights, middle(code, width.bits)) - line(heights, end)) / far;
  }
  double cell_width(int bits) const;

 private:
  static double steps(double value, int frac);
};

}  // namespace mase
