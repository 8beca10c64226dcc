// SPDX-License-Identifier: Apache-2.0
// A convolution of one channel with itself: each result is a sum over the taps of a window of one
// plane. Each has a plain twin in `reference`.
#pragma once

#include "mase/engine/kernels/shifted.h"
#include "mase/engine/kernels/windows.h"

namespace mase::kernels {

constexpr int64_t most_depthwise_taps = 49;

// One row of results of several channels, with rows of the image that lie anywhere.
struct DepthwiseRows {
  PlaneWindows windows;      // of the width; of the height only the kernel counts
  TapRun inside;             // the taps [begin, end) of the height that meet a row
  const float* const* rows;  // where the row of each of them begins in the first channel
  int64_t channels;          // one after the other:
  int64_t x_stride, y_stride;
  float low, high;  // limits of the results
};

namespace reference {

// y = finish(bias + sum over the taps of w(tap) x)
void depthwise(const PlaneWindows& shape, const float* w, float bias, const float* x, float* y,
               const Finish& finish);
// y = the same for each channel, without anything added
void depthwise_row(const DepthwiseRows& shape, const float* w, const float* bias, float* y);
// dw(tap) = sum over the results of g x
void depthwise_gradient(const PlaneWindows& shape, const float* g, const float* x, float* dw,
                        bool accumulate);

}  // namespace reference

// `finish.add` may be y itself.
void depthwise(const PlaneWindows& shape, const float* w, float bias, const float* x, float* y,
               const Finish& finish);
void depthwise_row(const DepthwiseRows& shape, const float* w, const float* bias, float* y);
void depthwise_gradient(const PlaneWindows& shape, const float* g, const float* x, float* dw,
                        bool accumulate);

}  // namespace mase::kernels
