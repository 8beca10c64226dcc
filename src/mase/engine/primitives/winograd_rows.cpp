// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/winograd_rows.h"

#include <algorithm>

#include "mase/engine/kernels/parallel.h"
#include "mase/engine/kernels/winograd_rows.h"

namespace mase::engine::convolution_primitive {

using kernels::row_places;
using kernels::row_results;

std::optional<RowWinograd> RowWinograd::of(Plan& plan, const Geometry& g) {
  const Planes& p = g.planes;
  const int64_t batch = plan.options.batch_size;
  constexpr int64_t fewest_samples = 16;  // samples are the vectors
  if (g.groups != 1 || p.kernel[1] != kernels::row_taps || batch < fewest_samples) return {};
  for (int i = 0; i < 2; ++i)
    if (p.stride[i] != 1 || p.dilation[i] != 1) return {};
  RowWinograd own(g);
  own.tiles_ = (p.result[1] + row_results - 1) / row_results;
  // In multiply-adds for each row of results and each sample; a transform takes about 45, since
  // what it writes is read again.
  const int64_t products = own.terms() * g.result_channels;
  const int64_t transforms = 45 * (g.image_channels + g.result_channels);
  if (1.1 * static_cast<double>(own.tiles_ * (row_places * products + transforms)) >
      static_cast<double>(p.result[1] * kernels::row_taps * products))
    return {};
  constexpr int64_t block_floats = int64_t{1} << 16;  // of sums: a share of L2
  const int64_t lanes = own.tiles_ * batch;
  own.block_ =
      std::clamp<int64_t>(block_floats / (row_places * g.result_channels * lanes), 1, p.result[0]);
  own.place_stride_ = padded_lanes(own.rows() * lanes);
  own.sum_stride_ = padded_lanes(own.block_ * lanes);
  own.planes_ = plan.scratch("planes", g.plane_floats());
  own.places_ = plan.scratch("places", row_places * g.image_channels * own.place_stride_);
  own.sums_ = plan.scratch("sums", row_places * g.result_channels * own.sum_stride_);
  own.weights_ = plan.scratch("transformed weights", row_places * products);
  return own;
}

void RowWinograd::join(Step& step) const {
  step.kernel += ", winograd rows";
  step.write({planes_, places_, sums_, weights_});
}

Step RowWinograd::prepare(int weight) const {
  Step step{"transform_weights", "winograd rows", {weight}, {weights_}};
  const int64_t count = g_.result_channels * terms();
  step.bind = [=, to = weights_](const Memory& memory) -> Kernel {
    return [count, w = memory[weight], u = memory[to]](const Run&) {
      kernels::winograd_rows_weights(w, count, u);
    };
  };
  return step;
}

RowWinograd::Bound::Bound(const RowWinograd& winograd, const Memory& memory)
    : own_(std::make_shared<RowWinograd>(winograd)),
      offsets_(std::make_shared<std::vector<int64_t>>(static_cast<size_t>(winograd.terms()))),
      planes_(memory[winograd.planes_]),
      places_(memory[winograd.places_]),
      sums_(memory[winograd.sums_]),
      weights_(memory[winograd.weights_]) {}

void RowWinograd::Bound::transform_weights(const float* w) const {
  kernels::winograd_rows_weights(w, own_->g_.result_channels * own_->terms(), weights_);
}

const float* RowWinograd::Bound::planes(const float* image, int64_t n) const {
  const Geometry& g = own_->g_;
  if (g.planes.direct) return image;
  kernels::for_each_piece(g.image_channels, g.threads, [&](int64_t c) {
    g.planes.fill(image + c * g.image_stride, g.image_stride, planes_ + c * g.plane_stride,
                  g.plane_stride, 1, n);
  });
  return planes_;
}

void RowWinograd::Bound::forward(const float* image, const float* bias, float* result,
                                 const kernels::Finish& finish, int64_t n) const {
  const RowWinograd& own = *own_;
  const Geometry& g = own.g_;
  const int64_t channels = g.image_channels, outputs = g.result_channels, terms = own.terms();
  const int64_t lanes = own.tiles_ * n, row = g.planes.result[1] * n;
  const float* from = planes(image, n);
  const kernels::RowTiles tiles{
      own.rows(),           own.tiles_,        n,
      g.planes.phase_width, g.planes.pitch(n), channels * own.place_stride_};
  kernels::for_each_piece(channels, g.threads, [&](int64_t c) {
    kernels::winograd_rows_image(tiles, from + c * g.plane_stride, places_ + c * own.place_stride_);
  });
  kernels::ShiftedShape shape{};
  shape.out = outputs;
  shape.in = shape.out_step = terms;
  shape.in_step = 1;
  shape.y_stride = own.sum_stride_;
  for (int64_t i = 0; i < terms; ++i)
    (*offsets_)[static_cast<size_t>(i)] =
        i / g.planes.kernel[0] * own.place_stride_ + i % g.planes.kernel[0] * lanes;
  shape.offsets = offsets_->data();
  for (int64_t first = 0; first < g.planes.result[0]; first += own.block_) {
    const int64_t rows = std::min(own.block_, g.planes.result[0] - first);
    shape.n = rows * lanes;
    kernels::for_each_piece(row_places, g.threads, [&](int64_t p) {
      kernels::shifted_linear(shape, weights_ + p * outputs * terms, nullptr,
                              places_ + p * channels * own.place_stride_ + first * lanes,
                              sums_ + p * outputs * own.sum_stride_, {}, false);
    });
    kernels::for_each_piece(outputs, g.threads, [&](int64_t o) {
      for (int64_t y = 0; y < rows; ++y) {
        const int64_t at = o * g.result_stride + (first + y) * row;
        kernels::winograd_rows_result(sums_ + o * own.sum_stride_ + y * lanes,
                                      outputs * own.sum_stride_, g.planes.result[1], n,
                                      bias ? bias[o] : 0.0f, result + at, finish.at(at));
      }
    });
  }
}

}  // namespace mase::engine::convolution_primitive
