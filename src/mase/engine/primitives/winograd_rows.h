// SPDX-License-Identifier: Apache-2.0
// A convolution whose taps are five wide by Winograd's transforms along its rows: 8 products of
// matrices, over channels and rows of taps, in the place of the 20 that four results take.
//   planes => places [8][channels][tiles] => sums [8][outputs][tiles] => result
#pragma once

#include <optional>

#include "mase/engine/primitives/convolution_products.h"

namespace mase::engine::convolution_primitive {

class RowWinograd {
 public:
  // Nothing if it is no such convolution, or a direct sum is as quick.
  static std::optional<RowWinograd> of(Plan& plan, const Geometry& g);

  void join(Step& step) const;     // its working memory
  Step prepare(int weight) const;  // transforms the weights, once if they stay as they are

  // With its memory.
  class Bound {
   public:
    Bound(const RowWinograd& winograd, const Memory& memory);
    void transform_weights(const float* w) const;
    // result = finish(bias + w * image)
    void forward(const float* image, const float* bias, float* result,
                 const kernels::Finish& finish, int64_t n) const;

   private:
    const float* planes(const float* image, int64_t n) const;

    std::shared_ptr<const RowWinograd> own_;
    std::shared_ptr<std::vector<int64_t>> offsets_;  // of channels and rows of taps
    float *planes_, *places_, *sums_, *weights_;
  };

 private:
  explicit RowWinograd(const Geometry& g) : g_(g) {}

  int64_t terms() const { return g_.image_channels * g_.planes.kernel[0]; }
  int64_t rows() const { return g_.planes.result[0] + g_.planes.kernel[0] - 1; }  // of places

  Geometry g_;
  int64_t tiles_ = 0;  // of a row
  int64_t block_ = 0;  // rows of results done together
  int64_t place_stride_ = 0, sum_stride_ = 0;
  int planes_ = -1, places_ = -1, sums_ = -1, weights_ = -1;
};

}  // namespace mase::engine::convolution_primitive
