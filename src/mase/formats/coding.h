// SPDX-License-Identifier: Apache-2.0
// Arrays of representable values to integer codes and back.
#pragma once

#include <cstdint>
#include <functional>

#include "mase/formats/kernels/codes.h"

namespace mase {

struct Coding {
  int bits = 0;  // 0: there are no codes
  std::function<void(const float* values, uint32_t* codes, size_t count)> encode = {};
  std::function<void(const uint32_t* codes, float* values, size_t count)> decode = {};
  // One by one: what the two above are tested against.
  std::function<uint32_t(float value)> code_of = {};
  std::function<float(uint32_t code)> value_of = {};
};

Coding coding_of(const CodeLayout& layout);
// For formats of a few values: plain loops.
Coding coding_of(int bits, std::function<uint32_t(float)> code_of,
                 std::function<float(uint32_t)> value_of);

}  // namespace mase
