// SPDX-License-Identifier: Apache-2.0
// Integers with a given scale and zero point, by the arithmetic of ONNX and QONNX: single precision
// throughout, so that their executors' results come out bit for bit.
//   zero first (QONNX):  k = round(clamp(x / scale + zero)),      value = (k - zero) * scale
//   zero last  (ONNX):   k = clamp(round(x / scale) + zero),      value = (k - zero) * scale
#pragma once

#include <cstddef>

#include "mase/formats/rounding.h"

namespace mase {

struct AffineSpec {
  float scale = 1, zero = 0, low = 0, high = 0;
  bool zero_first = true;
  Rounding rounding = Rounding::nearest_even;
};

void affine_kernel(const AffineSpec& spec, const float* in, float* out, size_t count);
// One by one: what the kernel is tested against. NaN stays.
float affine_reference(const AffineSpec& spec, float x);

}  // namespace mase
