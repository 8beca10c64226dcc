// SPDX-License-Identifier: Apache-2.0
// Rounding. A training program draws anew at each step from (seed, step, stream, piece), so threads
// and interruptions change nothing; evaluation always takes the format's draw 0.
#pragma once

#include "mase/engine/primitive.h"

namespace mase::engine {

// Formats count draws from the first value they are given: these have `first` samples before them.
void quantize_drawn_at(const Quantizer& quantizer, const float* in, float* out, const Shape& shape,
                       int64_t first, uint64_t draw);
uint64_t random_draw(uint64_t seed, uint64_t step, uint64_t stream, uint64_t piece);

// What the products of the backward pass multiply: as the forward pass had it, or, where the layer
// has formats for it, rounded for it from the values before the forward pass rounded them.
struct BackwardOperands {
  int gradient, x, weight;
};
BackwardOperands backward_operands(Backward& backward, const Primitive& product,
                                   const Quantization* formats, int gradient);

}  // namespace mase::engine
