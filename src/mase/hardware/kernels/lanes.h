// SPDX-License-Identifier: Apache-2.0
// The interpreter's steps over blocks of rows: one integer of every row side by side. Each step has
// whole blocks; a last block that is not full is computed whole all the same.
#pragma once

#include <cstdint>

namespace mase {

inline constexpr int lane_block = 128;  // rows; a few dozen live values stay in the first cache

enum class LaneOp : uint8_t { add, subtract, multiply, shift_left, shift_right, clamp, wrap };

// out = (a << k0) +- (b << k1) +- k2;  a * k0;  a << k0;  a >> k0;  a within [k0, k1];
// ((a & k0) ^ k1) - k1
struct LaneStep {
  LaneOp op = LaneOp::add;
  int64_t k0 = 0, k1 = 0, k2 = 0;
};

void lane_kernel(const LaneStep& step, const int32_t* a, const int32_t* b, int32_t* out);
void lane_kernel(const LaneStep& step, const int64_t* a, const int64_t* b, int64_t* out);

}  // namespace mase
