// SPDX-License-Identifier: Apache-2.0
// How many rows a linear layer of small integers puts into the right class: product, batch norm,
// relu and comparison in one sweep, with nothing written between them. For processors with
// has_integer_dot() (engine/kernels/integer_dot.h); the numbers compared are those of
// integer_linear, norm_apply and hits, to the bit.
#pragma once

#include <cstdint>

namespace mase::search {

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
