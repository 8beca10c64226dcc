// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mase::kernels {

namespace reference {
void add_scaled(float* out, const float* in, float factor, int64_t n);
}

// out += factor * in, for n values anywhere.
void add_scaled(float* out, const float* in, float factor, int64_t n);

}  // namespace mase::kernels
