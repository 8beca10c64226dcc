// SPDX-License-Identifier: Apache-2.0
// Products whose operands are both rounded to fixed point of at most 8 bits, as integers: in
// inference, on machines that have the instruction. A product of weights whose sums stay below 2^24
// is exact in float32 too, so its result has the same bits; any other one, and a batch with a value
// that is no code (NaN), is computed in float32.
#pragma once

#include <optional>

#include "mase/engine/kernels/integer_dot.h"
#include "mase/engine/primitive.h"

namespace mase::engine {

class IntegerProduct {
 public:
  // A product of weights [out, channels, taps] with rows of channels; nothing if it is no such one,
  // or too small to pay. `tiles`: by tile registers, nothing where there are none.
  static std::optional<IntegerProduct> of(Plan& plan, const Primitive& p, int64_t x_stride,
                                          bool tiles);

  int64_t quads() const { return (channels_ + kernels::quad - 1) / kernels::quad; }  // of channels
  int64_t terms() const { return quads() * taps_; }
  int64_t stride() const { return x_stride_; }  // of the rows of quads
  uint32_t zero() const;                        // the word of four zeros
  void join(Step& step) const {
    step.kernel += tiles_ ? ", integer tiles" : ", integers";
    step.read({words_, starts_});
    step.write({packed_});
  }

  // With its memory.
  class Bound {
   public:
    Bound(const IntegerProduct& product, const Memory& memory);
    // Rows of x as rows of quads; null if a value is no code, or the weights were not fit.
    const uint32_t* pack(const float* x, int64_t lanes) const;
    // shape.in is terms(); otherwise as kernels::shifted_linear.
    void run(const kernels::ShiftedShape& shape, const float* bias, const uint32_t* quads, float* y,
             const kernels::Finish& finish) const;

   private:
    kernels::IntegerSegment* segment_;
    float x_scale_, unit_;
    int32_t offset_;
    int64_t channels_, stride_;
    const float* fit_;  // 1: the weights are
    const uint32_t* words_;
    const int32_t* starts_;
    uint32_t* packed_;
  };

 private:
  Step prepare(int weight, int bias) const;

  bool tiles_ = false;
  int64_t out_ = 0, channels_ = 0, taps_ = 1, x_stride_ = 0;
  float x_scale_ = 1, w_scale_ = 1;
  int32_t offset_ = 128;
  double most_ = 128;  // the largest |code| of x
  // Weights as words, what they begin with, and a batch of x. The first of `starts` is 1 where the
  // weights are fit.
  int words_ = -1, starts_ = -1, packed_ = -1;
};

}  // namespace mase::engine
