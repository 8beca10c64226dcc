// SPDX-License-Identifier: Apache-2.0
// Representable values to integer codes and back, for every layout of codes that more than one
// format uses. The vector kernels equal the scalar functions beside them for every value and code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mase/formats/number_type.h"

namespace mase {

struct CodeLayout {
  enum class Kind {
    whole,           // value * scale: two's complement, or plain binary when unsigned
    sign_magnitude,  // sign, then the whole magnitude
    floating,        // sign, exponent field, fraction; hidden bit and subnormals
    explicit_one,    // sign, exponent field, all bits of the significand
    power,           // sign, exponent field; the code of the least negative number is zero
  };
  Kind kind = Kind::whole;
  int width = 8;          // bits of a code, 1 to 32
  bool is_signed = true;  // whole only
  float scale = 1;        // whole only: a power of two
  int mantissa = 0, bias = 0;
  Specials specials = Specials::none;  // floating only
};

// NaN gets the code of zero where there is no code for it.
uint32_t code_of(const CodeLayout& layout, float value);
float value_of(const CodeLayout& layout, uint32_t code);

void encode_kernel(const CodeLayout& layout, const float* values, uint32_t* codes, size_t count);
void decode_kernel(const CodeLayout& layout, const uint32_t* codes, float* values, size_t count);

}  // namespace mase
