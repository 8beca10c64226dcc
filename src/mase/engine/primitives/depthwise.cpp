// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/depthwise.h"

#include "mase/engine/kernels/parallel.h"

namespace mase::engine::convolution_primitive {
namespace {

// Lanes that are neighbours in the image and in the result.
int64_t run_of_lanes(const Planes& planes, int64_t batch) {
  const int64_t inside = planes.result[1] - planes.dilation[1] * (planes.kernel[1] - 1);
  return planes.stride[1] == 1 ? inside * batch : batch;
}

kernels::WindowAxis axis_of(const Planes& p, int i) {
  return {p.kernel[i], p.stride[i], p.before[i], p.dilation[i], p.size[i], p.result[i]};
}

}  // namespace

std::optional<Depthwise> Depthwise::of(const Geometry& g, int64_t batch) {
  constexpr int64_t fewest_samples = 4, fewest_lanes = 8;
  if (g.groups < 2 || g.image_channels != 1 || g.result_channels != 1 ||
      g.planes.mode != PaddingMode::zeros || g.planes.taps() > kernels::most_depthwise_taps ||
      batch < fewest_samples || run_of_lanes(g.planes, batch) < fewest_lanes)
    return {};
  return Depthwise(g);
}

Depthwise::Depthwise(const Geometry& g)
    : windows_(axis_of(g.planes, 0), axis_of(g.planes, 1)),
      channels_(g.groups),
      taps_(g.planes.taps()),
      image_stride_(g.image_stride),
      result_stride_(g.result_stride),
      threads_(g.threads) {}

void Depthwise::forward(const float* w, const float* bias, const float* image, float* result,
                        const kernels::Finish& finish, int64_t n) const {
  const kernels::PlaneWindows own = windows_.of(n);
  kernels::for_each_piece(channels_, threads_, [&](int64_t c) {
    kernels::depthwise(own, w + c * taps_, bias ? bias[c] : 0.0f, image + c * image_stride_,
                       result + c * result_stride_, finish.at(c * result_stride_));
  });
}

void Depthwise::weights_gradient(const float* result, const float* image, float* dw,
                                 bool accumulate, int64_t n) const {
  const kernels::PlaneWindows own = windows_.of(n);
  kernels::for_each_piece(channels_, threads_, [&](int64_t c) {
    kernels::depthwise_gradient(own, result + c * result_stride_, image + c * image_stride_,
                                dw + c * taps_, accumulate);
  });
}

}  // namespace mase::engine::convolution_primitive
