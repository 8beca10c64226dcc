// SPDX-License-Identifier: Apache-2.0
// The interpreter's steps over blocks of rows: one integer of every row side by side. Each step has
// whole blocks; a last block that is not full is computed whole all the same.
#pragma once

#include <cstdint>
#include <span>

namespace mase {

inline constexpr int lane_block = 128;  // rows; a few dozen live values stay in the first cache

enum class LaneOp : uint8_t {
  add,
  subtract,
  multiply,
  shift_left,
  shift_right,
  round_even,
  clamp,
  wrap,
  linear_sum
};

// out = (a << k0) +- (b << k1) +- k2;  a * k0;  a << k0;  a >> k0;  a 2^-k0 to nearest,
// ties to even, where k0 is less than a lane's bits;  a within [k0, k1];
// ((a & k0) ^ k1) - k1;  k0 + factors[0] * operands[0] + factors[1] * operands[1] + ...
struct LaneStep {
  LaneOp op = LaneOp::add;
  int64_t k0 = 0, k1 = 0, k2 = 0;
  std::span<const int64_t> factors = {};  // of the node, which outlives the step
};

// A step on blocks of one memory, by their numbers. Steps of one operand read it as `b`, too; those
// of many have them all in `operands`.
struct LaneCall {
  LaneStep step = {};
  int a = 0, b = 0, to = 0;
  std::span<const int> operands = {};
};

// One after another: a step is some tens of cycles, of which a call of its own would be half.
void lane_kernels(std::span<const LaneCall> calls, int32_t* memory);
void lane_kernels(std::span<const LaneCall> calls, int64_t* memory);

}  // namespace mase
