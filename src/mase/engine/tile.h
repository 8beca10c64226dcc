// SPDX-License-Identifier: Apache-2.0
// A scalar expression as a short list of vector instructions run tile by tile: one sweep over
// memory whatever the expression, intermediate values staying in L1.
#pragma once

#include <vector>

#include "mase/ir/expr.h"

namespace mase::engine {

class TileProgram {
 public:
  static constexpr int64_t tile = 512;

  // Equal subexpressions are computed once.
  TileProgram(const Expr& expr, int operands);

  // Floats of working memory for runs with up to `n` values, constants included.
  int64_t workspace(int64_t n) const;
  // Writes the constants into the workspace; to be done once.
  void prepare(float* workspace, int64_t n) const;
  // out[0..n) from one pointer per operand. Scalar operands are pointers to one value, marked in
  // `scalar`.
  void run(const float* const* operands, const bool* scalar, float* out, int64_t n,
           float* workspace, int64_t capacity) const;

  size_t instructions() const { return code_.size(); }

 private:
  struct Instruction {
    ScalarOp op;
    int a, b, c, out;  // registers: operands, then constants, then temporaries
  };
  int operands_;
  std::vector<float> constants_;
  std::vector<Instruction> code_;
  int temporaries_ = 0;
  int result_ = 0;
};

}  // namespace mase::engine
