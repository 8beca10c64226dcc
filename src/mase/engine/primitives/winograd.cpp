// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/winograd.h"

#include <algorithm>

#include "mase/engine/kernels/parallel.h"

namespace mase::engine {
namespace {

using kernels::winograd_places;

// Places and sums of a block: a share of the last cache.
constexpr int64_t block_floats = int64_t{1} << 21;

// Planes of tiles of `side` x `side` values, two apart.
Planes tiles_of(const Shape& x, const Shape& tiles, int64_t side, std::vector<int64_t> before,
                PaddingMode mode) {
  Windows windows;
  windows.kernel = {side, side};
  windows.stride = {2, 2};
  windows.padding_before = before;
  windows.padding_after = std::move(before);
  windows.dilation = {1, 1};
  return Planes(windows, x, tiles, mode);
}

bool all(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [=](int64_t v) { return v == wanted; });
}

// Calls body(begin, end, thread) with a share of `count` for each thread.
template <class Body>
void each_share(int64_t count, int threads, const Body& body) {
  const int64_t shares = std::max<int64_t>(1, threads);
  kernels::for_each_piece(
      shares, threads, [&](int64_t t) { body(count * t / shares, count * (t + 1) / shares, t); });
}

// Rows of lanes => planes, each thread its share of the channels.
void fill(const Planes& planes, const float* from, int64_t stride, float* to, int64_t plane,
          int64_t channels, int threads, int64_t n) {
  each_share(channels, threads, [&](int64_t begin, int64_t end, int64_t) {
    planes.fill(from + begin * stride, stride, to + begin * plane, plane, end - begin, n);
  });
}

}  // namespace

ConvolutionShape shape_of(const Plan& plan, const Lowering::Convolution& options, int image,
                          int result) {
  return {options.windows,         options.padding_mode,  options.groups,
          plan.at(image).shape,    plan.at(result).shape, plan.row_stride(image),
          plan.row_stride(result), plan.options.threads};
}

std::optional<Winograd> Winograd::of(Plan& plan, const ConvolutionShape& shape, bool gradient) {
  const Windows& windows = shape.windows;
  if (shape.groups != 1 || windows.kernel.size() != 2 || !all(windows.kernel, 3) ||
      !all(windows.stride, 1) || !all(windows.dilation, 1))
    return {};
  const int64_t batch = plan.options.batch_size, channels = shape.image[1];
  const int64_t outputs = shape.result[1], height = shape.result[2], width = shape.result[3];
  const int64_t rows = (height + 1) / 2, columns = (width + 1) / 2;
  // Below these the transforms cost what they save, and vectors are half empty.
  constexpr int64_t least_channels = 16, least_lanes = 48;
  if (channels < least_channels || outputs < least_channels || rows * columns * batch < least_lanes)
    return {};
  const int64_t lanes = columns * batch;  // of a row of tiles
  if (winograd_places * (channels + outputs) * lanes > 8 * block_floats) return {};
  const Shape tiles{batch, channels, rows, columns};
  Winograd own(shape, tiles_of(shape.image, tiles, 4, windows.padding_before, shape.mode),
               tiles_of(shape.result, tiles, 2, {0, 0}, PaddingMode::zeros));
  own.tile_rows_ = rows;
  own.tile_columns_ = columns;
  own.block_ =
      std::clamp<int64_t>(block_floats / (winograd_places * (channels + outputs) * lanes), 1, rows);
  own.lane_stride_ = padded_lanes(own.block_ * lanes);
  own.image_plane_ = padded_lanes(own.image_.positions() * batch);
  own.row_floats_ = 4 * padded_lanes(lanes);
  own.planes_ = plan.scratch("planes", channels * own.image_plane_);
  own.places_ = plan.scratch("places", winograd_places * channels * own.lane_stride_);
  own.sums_ = plan.scratch("sums", winograd_places * outputs * own.lane_stride_);
  own.weights_ = plan.scratch("transformed weights", winograd_places * channels * outputs);
  if (gradient) {
    own.result_plane_ = padded_lanes(own.result_.positions() * batch);
    own.result_planes_ = plan.scratch("result planes", outputs * own.result_plane_);
  } else {
    own.rows_ = plan.scratch("rows", std::max(1, shape.threads) * own.row_floats_);
  }
  return own;
}

void Winograd::join(Step& step) const {
  step.kernel += ", winograd";
  step.write({planes_, places_, sums_, weights_, rows_, result_planes_});
}

Step Winograd::prepare(int weight) const {
  Step step{"transform_weights", "winograd", {weight}, {weights_}};
  const int64_t count = channels() * outputs();
  step.bind = [=, to = weights_](const Memory& memory) -> Kernel {
    return [count, w = memory[weight], u = memory[to]](const Run&) {
      kernels::winograd_weights(w, count, u);
    };
  };
  return step;
}

Winograd::Bound::Bound(const Winograd& winograd, const Memory& memory)
    : own_(std::make_shared<Winograd>(winograd)),
      planes_(memory[winograd.planes_]),
      places_(memory[winograd.places_]),
      sums_(memory[winograd.sums_]),
      weights_memory_(memory[winograd.weights_]),
      rows_(memory.at(winograd.rows_)),
      result_planes_(memory.at(winograd.result_planes_)) {
  std::vector<int64_t> offsets;
  for (int64_t c = 0; c < own_->channels(); ++c) offsets.push_back(c * own_->lane_stride_);
  offsets_ = std::make_shared<const std::vector<int64_t>>(std::move(offsets));
}

void Winograd::Bound::transform_weights(const float* w) const {
  kernels::winograd_weights(w, own_->channels() * own_->outputs(), weights_memory_);
}

void Winograd::Bound::image_places(const Winograd& own, int64_t first, int64_t rows,
                                   int64_t n) const {
  int64_t offsets[16];
  for (int64_t i = 0; i < 16; ++i) offsets[i] = own.image_.tap(i / 4, i % 4, n);
  const kernels::WinogradTiles tiles{offsets, own.image_.pitch(n), rows, own.tile_columns_ * n,
                                     own.channels() * own.lane_stride_};
  each_share(own.channels(), own.shape_.threads, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t c = begin; c < end; ++c)
      kernels::winograd_image(tiles, planes_ + c * own.image_plane_ + first * tiles.pitch,
                              places_ + c * own.lane_stride_);
  });
}

kernels::ShiftedShape Winograd::Bound::product(int64_t lanes) const {
  kernels::ShiftedShape shape{};
  shape.out = own_->outputs();
  shape.in = shape.out_step = own_->channels();
  shape.in_step = 1;
  shape.offsets = offsets_->data();
  shape.y_stride = own_->lane_stride_;
  shape.n = lanes;
  return shape;
}

void Winograd::Bound::forward(const float* image, const float* bias, float* result,
                              const kernels::Finish& finish, bool accumulate, int64_t n) const {
  const Winograd& own = *own_;
  const int64_t channels = own.channels(), outputs = own.outputs(), lanes = own.tile_columns_ * n;
  const int64_t row = own.width() * n, stride = own.shape_.result_stride;
  const int threads = own.shape_.threads;
  fill(own.image_, image, own.shape_.image_stride, planes_, own.image_plane_, channels, threads, n);
  for (int64_t first = 0; first < own.tile_rows_; first += own.block_) {
    const int64_t rows = std::min(own.block_, own.tile_rows_ - first);
    image_places(own, first, rows, n);
    const kernels::ShiftedShape shape = product(rows * lanes);
    kernels::for_each_piece(winograd_places, threads, [&](int64_t p) {
      kernels::shifted_linear(shape, weights_memory_ + p * outputs * channels, nullptr,
                              places_ + p * channels * own.lane_stride_,
                              sums_ + p * outputs * own.lane_stride_, {}, false);
    });
    each_share(outputs, threads, [&](int64_t begin, int64_t end, int64_t thread) {
      float* pair = rows_ + thread * own.row_floats_;  // two rows of the image
      for (int64_t o = begin; o < end; ++o)
        for (int64_t y = 0; y < rows; ++y) {
          kernels::winograd_result(sums_ + o * own.lane_stride_ + y * lanes,
                                   outputs * own.lane_stride_, own.tile_columns_, n,
                                   bias ? bias[o] : 0.0f, pair, own.row_floats_ / 2);
          const int64_t top = 2 * (first + y), at = o * stride + top * row;
          kernels::Finish last = finish.at(at);
          if (accumulate) last.add = result + at;
          kernels::finish_rows(pair, own.row_floats_ / 2, result + at, row,
                               std::min<int64_t>(2, own.shape_.result[2] - top), row, last);
        }
    });
  }
}

void Winograd::Bound::weights_gradient(const float* image, const float* gradient, float* dw,
                                       bool accumulate, int64_t n) const {
  const Winograd& own = *own_;
  const int64_t channels = own.channels(), outputs = own.outputs(), lanes = own.tile_columns_ * n;
  const int threads = own.shape_.threads;
  fill(own.image_, image, own.shape_.image_stride, planes_, own.image_plane_, channels, threads, n);
  fill(own.result_, gradient, own.shape_.result_stride, result_planes_, own.result_plane_, outputs,
       threads, n);
  int64_t offsets[4];
  for (int64_t i = 0; i < 4; ++i) offsets[i] = own.result_.tap(i / 2, i % 2, n);
  for (int64_t first = 0; first < own.tile_rows_; first += own.block_) {
    const int64_t rows = std::min(own.block_, own.tile_rows_ - first);
    image_places(own, first, rows, n);
    const kernels::WinogradTiles tiles{offsets, own.result_.pitch(n), rows, lanes,
                                       outputs * own.lane_stride_};
    each_share(outputs, threads, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t o = begin; o < end; ++o)
        kernels::winograd_result_gradient(
            tiles, result_planes_ + o * own.result_plane_ + first * tiles.pitch,
            sums_ + o * own.lane_stride_);
    });
    const kernels::ShiftedShape shape = product(rows * lanes);
    kernels::for_each_piece(winograd_places, threads, [&](int64_t p) {
      kernels::shifted_gradient(shape, sums_ + p * outputs * own.lane_stride_,
                                places_ + p * channels * own.lane_stride_,
                                weights_memory_ + p * outputs * channels, first > 0);
    });
  }
  kernels::winograd_weights_gradient(weights_memory_, channels * outputs, dw, accumulate);
}

}  // namespace mase::engine
