// SPDX-License-Identifier: Apache-2.0
// The sums of integer_dot.h by tile registers (AMX): one instruction multiplies 16 outputs by 64
// rows of codes by 16 lanes. The same loops run with the instructions emulated, so that everything
// but the instructions themselves is tested on every machine.
#pragma once

#include "mase/engine/kernels/shifted.h"

namespace mase::kernels {

// What is done with a sum: y = finish(before + unit * sum).
struct IntegerTotals {
  float unit;
  const float* bias;  // null: before is y
  Finish finish;
};

// One segment of shape.n lanes, shape.in (at most integer_longest_sum) quads.
using IntegerSegment = void(const ShiftedShape& shape, const uint32_t* w, const int32_t* start,
                            const IntegerTotals& totals, const uint32_t* x, float* y);

// The processor has tile registers for bytes, and the system lets this process use them.
bool has_integer_tiles();

IntegerSegment integer_tile_segment;           // where has_integer_tiles()
IntegerSegment emulated_integer_tile_segment;  // anywhere

}  // namespace mase::kernels
