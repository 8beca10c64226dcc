// SPDX-License-Identifier: Apache-2.0
// Fraction bits that training finds, one for every value of a parameter or every feature of an
// activation (Sun et al., "Gradient-based automatic mixed precision quantization", 2024). They live
// while a network trains; afterwards widths are whole numbers and the format is `integer`.
#pragma once

#include "mase/formats/format.h"

namespace mase {

// A layer's parameter holds (bits + 32) / 8: no number of bits is the 0 that stands for "not found
// yet", and optimisers that normalise gradients move bits eight times as fast as weights.
inline constexpr double learned_bits_slope = 8, learned_bits_offset = 32;
inline constexpr int least_learned_bits = -12, most_learned_bits = 14;

double fraction_bits(float number);     // as the parameter means it, not yet whole
int whole_fraction_bits(float number);  // what values are rounded with
float fraction_number(double bits);

// The code of a value: floor(x 2^bits + 1/2).
double fraction_code(float value, int bits);

// Values start with so many fraction bits. `features` 0: a parameter, one number a value; else an
// activation of so many features. There is no range: what whole bits values need is found from the
// values at the end.
QuantizerPtr learned_bits_quantizer(int64_t features, double start);

}  // namespace mase
