// SPDX-License-Identifier: Apache-2.0
// How many rows a linear layer of small integers puts into the right class: product, batch norm,
// relu and comparison in one sweep, with nothing written between them. For processors with
// has_integer_dot() (engine/kernels/integer_dot.h); the numbers compared are those of
// integer_linear, norm_apply and hits, to the bit.
#pragma once

#include <cstdint>

#include "mase/engine/kernels/integer_dot.h"
#include "mase/formats/kernels/elementwise.h"

namespace mase::search {

// Fixed point whose codes round_quads can make: to nearest, clamped.
bool rounds_to_quads(const IntegerSpec& spec);
// What the quantizer and pack_quads make of x, without the numbers in between. Whole vectors of 16
// are read and written. False if one is not a number: then `out` means nothing.
bool round_quads(const IntegerSpec& spec, const kernels::Quads& shape, const float* x,
                 uint32_t* out);

struct IntegerHits {
  int64_t classes, quads;
  int64_t stride;         // of x, in words; a multiple of 16
  int64_t n;              // rows
  const uint32_t* words;  // [classes][quads]
  const int32_t* starts;  // [classes]
  float unit;
  const float* bias;                   // null: none
  const float *mean, *factor, *shift;  // of a batch norm, [classes]; mean null: none
  bool relu;
};
// x: [quads][stride], what pack_quads makes; labels may be read up to a multiple of 16.
int64_t integer_hits(const IntegerHits& layer, const uint32_t* x, const int32_t* labels);

}  // namespace mase::search
