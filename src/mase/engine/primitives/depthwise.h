// SPDX-License-Identifier: Apache-2.0
// A convolution in which every channel has only itself to look at (as many groups as channels): a
// few products for each value, so that copies into padded planes would take longer than the sums.
#pragma once

#include <optional>

#include "mase/engine/kernels/depthwise.h"
#include "mase/engine/primitives/convolution_products.h"

namespace mase::engine::convolution_primitive {

class Depthwise {
 public:
  // Nothing if it is no such convolution, or its rows are too short to fill vectors.
  static std::optional<Depthwise> of(const Geometry& g, int64_t batch);

  void join(Step& step) const { step.kernel += ", depthwise"; }
  // result = finish(bias + w * image); `finish.add` may be the result.
  void forward(const float* w, const float* bias, const float* image, float* result,
               const kernels::Finish& finish, int64_t n) const;
  // dw (+)= result * image^T
  void weights_gradient(const float* result, const float* image, float* dw, bool accumulate,
                        int64_t n) const;

 private:
  explicit Depthwise(const Geometry& g);

  kernels::Windowing windows_;
  int64_t channels_, taps_, image_stride_, result_stride_;
  int threads_;
};

}  // namespace mase::engine::convolution_primitive
