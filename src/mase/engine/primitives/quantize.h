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

// The tensor rounded for the products of the backward pass; itself if there is no quantizer.
// `index` tells the operands of a product apart.
int rounded_for_backward(Backward& backward, const Primitive& product, const Quantizer* quantizer,
                         int tensor, uint64_t index);

int unrounded(const Plan& plan, int tensor);    // what was rounded to this tensor
bool is_rounded(const Plan& plan, int tensor);  // to a number format, laid out anew or not

}  // namespace mase::engine
