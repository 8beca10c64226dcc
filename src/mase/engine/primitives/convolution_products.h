// SPDX-License-Identifier: Apache-2.0
// A convolution as products with shifted rows: where each channel and tap begins in the planes, and
// the four ways of multiplying with them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mase/engine/kernels/shifted.h"
#include "mase/engine/primitive.h"
#include "mase/engine/primitives/fold.h"
#include "mase/engine/primitives/integer.h"
#include "mase/engine/primitives/planes.h"

namespace mase::engine::convolution_primitive {

// Whole planes are rounded up to whole vectors; behind the last one there is room for that.
constexpr int64_t spare_lanes = 16;

// The convolution from `image` (C channels) to `result` (O channels), whatever way it is run.
struct Geometry {
  Planes planes;
  int64_t groups, image_channels, result_channels;  // of one group
  int64_t image_stride, result_stride, plane_stride;
  int threads;
  int64_t wide_stride = 0;  // of results as wide as the planes; 0: they are written row by row

  int64_t terms() const { return image_channels * planes.taps(); }
  int64_t plane_floats() const {
    return planes.direct ? 0 : image_channels * plane_stride + spare_lanes;
  }
};

// Sums and limits behind it, as the kernels take them.
kernels::Finish finish_of(const Epilogue& epilogue, const Memory& memory);

// From the tensor of the image to that of the result.
Geometry geometry_of(const Plan& plan, const Lowering::Convolution& options, int image, int result);
Geometry geometry_of(const Plan& plan, const Primitive& p);  // of a convolution
// Sums of rounded operands have to stay what they are: exact where the format says so.
bool may_be_transformed(const Plan& plan, const Primitive& p);
std::string detail_of(const Geometry& g);  // "16 -> 32, 3x3"

// Rows of few lanes, as those of a small image of one sample, leave vectors half empty. Then all
// rows are computed as one, the places between them too, and what is wanted is copied out.
bool worth_whole_planes(const Planes& planes, int64_t n);
// What a channel of the result takes in vectors along the rows, by the better of both ways.
double row_vectors(const Planes& planes, int64_t n);

// The tables of a batch of n samples, made when n changes.
struct Tables {
  int64_t n = -1;
  std::vector<int64_t> image;   // of each channel and tap: where it begins in the planes
  std::vector<int64_t> result;  // of each channel of the result

  void make(const Geometry& g, int64_t samples);
};

std::shared_ptr<Tables> tables_of(const Geometry& g);

// Every output's sum of `terms` products with the image.
kernels::ShiftedShape product_shape(const Geometry& g, const Tables& tables, int64_t terms,
                                    int64_t n);

// The planes of a group's channels: `image` itself, or filled in.
const float* planes_of(const Geometry& g, const float* image, int64_t group, float* scratch,
                       int64_t n);

// result = w * image
void run_forward(const Geometry& g, Tables& tables, const float* w, const float* bias,
                 const float* image, float* result, float* scratch, int64_t n,
                 const kernels::Finish& finish, bool accumulate, float* wide = nullptr);
// The same with integers, which stand in the planes four channels to a word; one group.
void run_integers(const Geometry& g, const IntegerProduct& product,
                  const IntegerProduct::Bound& bound, Tables& tables, const uint32_t* quads,
                  const float* bias, float* result, float* scratch, int64_t n,
                  const kernels::Finish& finish);
// image (+)= w^T * result, tap by tap; `taps` holds the weights of one tap after the other.
void run_transposed(const Geometry& g, Tables& tables, const float* w, const float* bias,
                    const float* result, float* image, float* scratch, float* taps, int64_t n,
                    bool accumulate);
// dw = result * image^T
void run_weights(const Geometry& g, Tables& tables, const float* result, const float* image,
                 float* scratch, float* dw, int64_t n, bool accumulate);

}  // namespace mase::engine::convolution_primitive
