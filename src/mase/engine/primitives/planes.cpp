// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/planes.h"

#include <algorithm>
#include <cstring>

#include "mase/engine/kernels/kernels.h"

namespace mase::engine {
namespace {

// Columns of n values, `step` columns apart on one side. A number of samples that is known when
// this is compiled is copied by one instruction.
template <int64_t kSamples, class T>
void copy_apart(const T* from, int64_t step, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * kSamples, from + i * step * kSamples, kSamples * sizeof(T));
}

template <class T>
void copy_columns(const T* from, int64_t step, T* to, int64_t count, int64_t n) {
  if (step == 1)
    std::memcpy(to, from, static_cast<size_t>(count * n) * sizeof(T));
  else if (n == 1)
    copy_apart<1>(from, step, to, count);
  else if (n == 2)
    copy_apart<2>(from, step, to, count);
  else if (n == 4)
    copy_apart<4>(from, step, to, count);
  else if (n == 8)
    copy_apart<8>(from, step, to, count);
  else
    for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * step * n, n, to + i * n);
}

void add_columns(const float* from, float* to, int64_t step, int64_t count, int64_t n) {
  if (step == 1) return kernels::add_to(to, from, count * n);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t b = 0; b < n; ++b) to[i * step * n + b] += from[i * n + b];
}

}  // namespace

Planes::Planes(const Windows& windows, const Shape& x, const Shape& out, PaddingMode padding_mode)
    : PlaneWindows(windows, x, out, padding_mode) {
  bool padded = false;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t needed = (result[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1;
    padded = padded || before[i] > 0 || needed > size[i];
    if (i == 0) height = needed;
    (i == 0 ? phase_height : phase_width) = (needed + stride[i] - 1) / stride[i];
  }
  direct = !padded && stride[0] == 1 && stride[1] == 1;
  if (direct) {
    height = phase_height = size[0];
    phase_width = size[1];
    return;
  }
  for (int64_t y = 0; y < height; ++y) row_source_.push_back(source(y, 0));
  for (int64_t remainder = 0; remainder < stride[1]; ++remainder)
    for (int64_t j = 0; j < phase_width; ++j) {
      const int64_t from = source(j * stride[1] + remainder, 1);
      const bool goes_on =
          j > 0 && (from < 0 ? runs_.back().from < 0
                             : runs_.back().from >= 0 &&
                                   from == runs_.back().from + runs_.back().count * stride[1]);
      if (goes_on)
        ++runs_.back().count;
      else
        runs_.push_back({remainder * phase() + j, from, 1});
    }
}

template <class T>
void Planes::fill(const T* x, int64_t x_stride, T* planes, int64_t to_stride, int64_t channels,
                  int64_t n, T zero) const {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t y = 0; y < height; ++y) {
      T* to = planes + c * to_stride + row_place(y) * n;
      const int64_t row = row_source_[static_cast<size_t>(y)];
      const T* from = x + c * x_stride + row * size[1] * n;
      for (const ColumnRun& run : runs_) {
        if (row < 0 || run.from < 0)
          std::fill_n(to + run.column * n, run.count * n, zero);
        else
          copy_columns(from + run.from * n, stride[1], to + run.column * n, run.count, n);
      }
    }
}

template void Planes::fill(const float* x, int64_t x_stride, float* planes, int64_t stride,
                           int64_t channels, int64_t n, float zero) const;
template void Planes::fill(const uint32_t* x, int64_t x_stride, uint32_t* planes, int64_t stride,
                           int64_t channels, int64_t n, uint32_t zero) const;

void Planes::send_back(const float* planes, int64_t from_stride, float* dx, int64_t x_stride,
                       int64_t channels, int64_t n, bool accumulate) const {
  for (int64_t c = 0; c < channels; ++c) {
    if (!accumulate) std::fill_n(dx + c * x_stride, size[0] * size[1] * n, 0.0f);
    for (int64_t y = 0; y < height; ++y) {
      const float* from = planes + c * from_stride + row_place(y) * n;
      const int64_t row = row_source_[static_cast<size_t>(y)];
      if (row < 0) continue;
      float* to = dx + c * x_stride + row * size[1] * n;
      for (const ColumnRun& run : runs_)
        if (run.from >= 0)
          add_columns(from + run.column * n, to + run.from * n, stride[1], run.count, n);
    }
  }
}

}  // namespace mase::engine
