// SPDX-License-Identifier: Apache-2.0
// A convolution whose vectors are output channels, for images so small that vectors along their
// rows would be half empty; then its results are transposed into rows.
//   planes => sums [positions][outputs] => result
#pragma once

#include <optional>

#include "mase/engine/primitives/convolution_products.h"

namespace mase::engine::convolution_primitive {

class OutputLanes {
 public:
  // Nothing if vectors along the rows are as quick.
  static std::optional<OutputLanes> of(Plan& plan, const Geometry& g);

  void join(Step& step) const;     // its working memory
  Step prepare(int weight) const;  // packs the weights

  // With its memory.
  class Bound {
   public:
    Bound(const OutputLanes& lanes, const Memory& memory);
    // result = finish(bias + w * image); nothing is added
    void forward(const float* image, const float* bias, float* result,
                 const kernels::Finish& finish, int64_t n) const;

   private:
    std::shared_ptr<const OutputLanes> own_;
    std::shared_ptr<Tables> tables_;
    float *planes_, *sums_, *weights_;
  };

 private:
  explicit OutputLanes(const Geometry& g) : g_(g) {}

  Geometry g_;
  int planes_ = -1, sums_ = -1, weights_ = -1;
};

}  // namespace mase::engine::convolution_primitive
