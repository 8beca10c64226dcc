// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/coding.h"

namespace mase {

Coding coding_of(const CodeLayout& layout) {
  Coding coding;
  coding.bits = layout.width;
  coding.encode = [layout](const float* values, uint32_t* codes, size_t count) {
    encode_kernel(layout, values, codes, count);
  };
  coding.decode = [layout](const uint32_t* codes, float* values, size_t count) {
    decode_kernel(layout, codes, values, count);
  };
  coding.code_of = [layout](float value) { return mase::code_of(layout, value); };
  coding.value_of = [layout](uint32_t code) { return mase::value_of(layout, code); };
  return coding;
}

Coding coding_of(int bits, std::function<uint32_t(float)> code_of,
                 std::function<float(uint32_t)> value_of) {
  Coding coding;
  coding.bits = bits;
  coding.encode = [code_of](const float* values, uint32_t* codes, size_t count) {
    for (size_t i = 0; i < count; ++i) codes[i] = code_of(values[i]);
  };
  coding.decode = [value_of](const uint32_t* codes, float* values, size_t count) {
    for (size_t i = 0; i < count; ++i) values[i] = value_of(codes[i]);
  };
  coding.code_of = std::move(code_of);
  coding.value_of = std::move(value_of);
  return coding;
}

}  // namespace mase
