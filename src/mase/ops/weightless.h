// SPDX-License-Identifier: Apache-2.0
// What the layers of a weightless network are, for evaluation, training and hardware alike: bits
// from thresholds, tables of a few bits that are wired to some of them, and counts of bits.
#pragma once

#include <cstdint>

#include "mase/base/tensor.h"
#include "mase/base/value.h"

namespace mase {

inline constexpr int most_table_inputs = 8;

// thermometer: a feature's code and the bits that say which thresholds it has reached.
struct ThermometerShape {
  int64_t in = 0, levels = 1;
  int input_width = 1, input_frac = 0;
  bool is_signed = false;

  explicit ThermometerShape(const Value& attributes);
  int64_t low() const { return is_signed ? -(int64_t{1} << (input_width - 1)) : 0; }
  int64_t high() const { return low() + (int64_t{1} << input_width) - 1; }
  int64_t code_of(double x) const;  // rounded half up, saturated
  double value_of(int64_t code) const;
};

// lut_layer: every output is a table of `inputs` of the bits; `wiring` says of which.
struct LutLayerShape {
  int64_t in = 0, out = 0, inputs = 6;

  explicit LutLayerShape(const Value& attributes);
  int64_t entries() const { return int64_t{1} << inputs; }
  // Whatever a buffer says, one of the bits.
  int64_t wire(double number) const;
};

// group_sum: the bits in equal groups, each counted with its weight, a power of two or none.
struct GroupSumShape {
  int64_t in = 0, groups = 0;

  explicit GroupSumShape(const Value& attributes);
};

}  // namespace mase
