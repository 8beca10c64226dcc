// SPDX-License-Identifier: Apache-2.0
// Rounding. A training program draws anew at each step from (seed, step, stream, piece), so threads
// and interruptions change nothing; evaluation always takes the format's draw 0.
#pragma once

#include "mase/engine/primitive.h"

namespace mase::engine {

// What is drawn for a step of the program.
struct Draws {
  bool drawn;
  uint64_t seed, stream;

  Draws(const Plan& plan, const Quantizer& quantizer, uint64_t stream);
  // Of a piece of the step.
  uint64_t at(const Run& run, uint64_t piece) const;
  // How many values of the whole batch come before this process's, for so many values a sample.
  int64_t first(const Run& run, int64_t values) const;
};
uint64_t random_draw(uint64_t seed, uint64_t step, uint64_t stream, uint64_t piece);

// What the products of the backward pass multiply: as the forward pass had it, or, where the layer
// has formats for it, rounded for it from the values before the forward pass rounded them.
struct BackwardOperands {
  int gradient, x, weight;
};
BackwardOperands backward_operands(Backward& backward, const Primitive& product,
                                   const Quantization* formats, int gradient);

}  // namespace mase::engine
