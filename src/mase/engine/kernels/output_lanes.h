// SPDX-License-Identifier: Apache-2.0
// The sums of shifted.h with outputs as the lanes of vectors: for rows so short that vectors along
// them would be half empty. Each element is summed up in the order of shifted_linear, to the same
// bits. It has a plain twin in `reference`.
#pragma once

#include "mase/engine/kernels/shifted.h"

namespace mase::kernels {

constexpr int64_t output_group = 16;  // whole vectors with every instruction set

// w [out][in] => [out / 16][in][16]; `out` is a multiple of 16
void pack_outputs(const float* w, int64_t out, int64_t in, float* packed);

namespace reference {

// y[lane][o] = bias[o] + sum over i of w(o, i) x[offsets[i] + ...], limited to [low, high], the
// lanes of all segments one after the other
void output_lanes(const ShiftedShape& shape, const float* packed, const float* bias, const float* x,
                  float* y, const Finish& finish);

}  // namespace reference

void output_lanes(const ShiftedShape& shape, const float* packed, const float* bias, const float* x,
                  float* y, const Finish& finish);

}  // namespace mase::kernels
