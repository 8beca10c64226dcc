// SPDX-License-Identifier: Apache-2.0
// Products of numbers of at most 8 bits as integers, exact: four rows of codes side by side in each
// 32-bit lane, multiplied and summed by one instruction (VNNI's vpdpbusd) where the processor has
// it. What is summed up exactly in float32 too gives the same bits either way.
#pragma once

#include <cstdint>

#include "mase/engine/kernels/integer_tiles.h"
#include "mase/engine/kernels/shifted.h"

namespace mase::kernels {

bool has_integer_dot();  // this processor has the instruction, and the kernels may use it

constexpr int64_t quad = 4;
// Quads summed up in one go; each such piece has corrections of its own.
constexpr int64_t integer_longest_sum = 256;

// Rows of float codes times `scale` are whole numbers from -offset to 255 - offset: as bytes, to
// which the offset was added, four rows in a word. Rows that are missing in the last quad are 0.
struct Quads {
  int64_t rows, stride, n;
  float scale;
  int32_t offset;
  int64_t out_stride;  // words
};

namespace reference {

// False if a value is no such number: then `out` means nothing.
bool pack_quads(const Quads& shape, const float* x, uint32_t* out);
// y[o] = relu(bias[o] + unit * (start[o] + sum over i and the bytes of w(o, i) x[offsets[i]...])).
// Bytes of x are unsigned, those of w signed. `start` has one number for each piece and output:
// [pieces][out]. As shifted_linear otherwise, in = the number of quads.
void integer_linear(const ShiftedShape& shape, const uint32_t* w, const int32_t* start, float unit,
                    const float* bias, const uint32_t* x, float* y, const Finish& finish);

}  // namespace reference

bool pack_quads(const Quads& shape, const float* x, uint32_t* out);
// `segment`: the sums by other instructions (integer_tiles.h); null: by VNNI's, or plain loops.
void integer_linear(const ShiftedShape& shape, const uint32_t* w, const int32_t* start, float unit,
                    const float* bias, const uint32_t* x, float* y, const Finish& finish,
                    IntegerSegment* segment = nullptr);

}  // namespace mase::kernels
