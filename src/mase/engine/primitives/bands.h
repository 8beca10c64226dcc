// SPDX-License-Identifier: Apache-2.0
// Convolutions one behind the other, [any,] depthwise, 1x1, row by row of the result: the rows a
// window meets are computed when it needs them and kept for the windows below it, so that what lies
// between the convolutions, which is wide, stays in L2 and is never a whole tensor. Wide images are
// cut into tiles of columns. Every sum has the order it has in the convolutions by themselves.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "mase/engine/kernels/depthwise.h"
#include "mase/engine/primitives/convolution_products.h"

namespace mase::engine::convolution_primitive {

class Bands {
 public:
  // Of two or three convolutions, in their order; nothing if they are no such ones, or each by
  // itself would be computed in another way.
  static std::optional<Bands> of(const Plan& plan, const std::vector<const Primitive*>& parts);

  // Weights, biases and limits of the convolutions, in their order.
  struct Layer {
    const float *weights, *bias;
    kernels::Finish finish;
  };

  int64_t plane_floats() const { return first_ ? first_->plane_floats() : 0; }
  int64_t scratch_floats() const;  // of all threads
  // Ready to run; allocates.
  class Bound {
   public:
    Bound(const Bands& bands, std::vector<Layer> layers, const float* image, float* result,
          float* planes, float* scratch);
    void run(int64_t n) const;

   private:
    struct ColumnTile {
      int64_t column, from;  // of the result, and of the image the depthwise convolution sees
      std::vector<kernels::TapRun> runs;
      kernels::WindowAxis width;
    };

    void rows(const ColumnTile& tile, int64_t begin, int64_t end, const float* image,
              float* scratch, int64_t n) const;
    void image_row(const ColumnTile& tile, int64_t row, const float* image, float* to,
                   int64_t n) const;
    void result_row(const ColumnTile& tile, int64_t row, const float* wide, int64_t n) const;

    std::shared_ptr<const Bands> own_;
    std::vector<Layer> layers_;
    std::shared_ptr<const std::vector<ColumnTile>> tiles_;
    std::shared_ptr<Tables> tables_;                       // of the first convolution
    std::shared_ptr<const std::vector<int64_t>> offsets_;  // of the channels of a wide row
    const float* image_;
    float *result_, *planes_, *scratch_;
  };

 private:
  Bands(std::optional<Geometry> first, const Geometry& middle, const Geometry& last, int64_t batch);

  int64_t channels() const { return middle_.groups; }
  int64_t thread_floats() const { return channels() * (kept_ * image_stride_ + wide_stride_); }

  std::optional<Geometry> first_;
  Geometry middle_, last_;
  int64_t kept_ = 0;     // rows of the first convolution's result
  int64_t columns_ = 0;  // of the result in a tile
  int64_t image_stride_ = 0, wide_stride_ = 0;
};

}  // namespace mase::engine::convolution_primitive
