// SPDX-License-Identifier: Apache-2.0
// Fixed point: the kernel's numbers for a type.
#pragma once

#include "mase/formats/kernels/elementwise.h"
#include "mase/formats/number_type.h"

namespace mase {

// "8/4"; "0..8/2..6 in 80 groups" where they differ.
std::string numbers_text(const Fixed& type);

// Of a type without vectors.
IntegerSpec integer_spec(const Fixed& type);

// Wider words hold numbers that single precision does not, and so no remainders of them.
inline constexpr int widest_wrap = 24;

}  // namespace mase
