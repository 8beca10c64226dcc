// SPDX-License-Identifier: Apache-2.0
// The quantizers of two and three values.
#pragma once

#include "mase/formats/format.h"

namespace mase {

Quantizer binary_quantizer(const Binary& type);
Quantizer ternary_quantizer(const Ternary& type);

// The sign drawn with probability clamp((x + 1) / 2, 0, 1): bits and limits of the type, but no
// fixed rule.
Quantizer stochastic_binary_quantizer(const Binary& like, uint64_t seed);
// MASE's ternary: a group in which every value is zeroed is scaled by NaN.
Quantizer reference_ternary_quantizer(bool scaled);

}  // namespace mase
