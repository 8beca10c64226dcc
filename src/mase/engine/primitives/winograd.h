// SPDX-License-Identifier: Apache-2.0
// A convolution of 3x3 taps by Winograd's transforms: the image as planes sorted by odd and even
// rows and columns, so that each of the 16 values of all tiles lies side by side; 16 products of
// matrices; and back. A block of tile rows is done from end to end while it is in cache.
//   planes => places [16][channels][tiles] => sums [16][outputs][tiles] => result
#pragma once

#include <optional>

#include "mase/engine/kernels/shifted.h"
#include "mase/engine/kernels/winograd.h"
#include "mase/engine/primitive.h"
#include "mase/engine/primitives/planes.h"

namespace mase::engine {

// A convolution as its products see it.
struct ConvolutionShape {
  Windows windows;
  PaddingMode mode = PaddingMode::zeros;
  int64_t groups = 1;
  Shape image, result;  // [batch, channels, height, width]
  int64_t image_stride = 0, result_stride = 0;
  int threads = 1;
};

// From the tensor of the image to that of the result.
ConvolutionShape shape_of(const Plan& plan, const Lowering::Convolution& options, int image,
                          int result);

class Winograd {
 public:
  // Nothing if it is no such convolution, or a direct sum is as quick. `gradient`: of the weights.
  static std::optional<Winograd> of(Plan& plan, const ConvolutionShape& shape, bool gradient);

  void join(Step& step) const;  // its working memory
  // Transforms the weights, once if they stay as they are.
  Step prepare(int weight) const;
  int weights() const { return weights_; }

  // With its memory.
  class Bound {
   public:
    Bound(const Winograd& winograd, const Memory& memory);
    void transform_weights(const float* w) const;
    // result = finish(bias + w * image), or added to it.
    void forward(const float* image, const float* bias, float* result,
                 const kernels::Finish& finish, bool accumulate, int64_t n) const;
    // dw (+)= result * image^T
    void weights_gradient(const float* image, const float* gradient, float* dw, bool accumulate,
                          int64_t n) const;

   private:
    // Places of tile rows [first, first + rows).
    void image_places(const Winograd& own, int64_t first, int64_t rows, int64_t n) const;

    // Of one place: outputs by channels, for so many lanes of tiles.
    kernels::ShiftedShape product(int64_t lanes) const;

    std::shared_ptr<const Winograd> own_;
    std::shared_ptr<const std::vector<int64_t>> offsets_;  // of the channels
    float *planes_, *places_, *sums_, *weights_memory_, *rows_, *result_planes_;
  };

 private:
  Winograd(const ConvolutionShape& shape, const Planes& image, const Planes& result)
      : shape_(shape), image_(image), result_(result) {}

  int64_t channels() const { return shape_.image[1]; }
  int64_t outputs() const { return shape_.result[1]; }
  int64_t width() const { return shape_.result[3]; }

  ConvolutionShape shape_;
  Planes image_, result_;  // of tiles; the result's for its gradient
  int64_t tile_rows_ = 0, tile_columns_ = 0;
  int64_t block_ = 0;        // tile rows done together
  int64_t lane_stride_ = 0;  // of places and sums
  int64_t image_plane_ = 0, result_plane_ = 0, row_floats_ = 0;
  int planes_ = -1, places_ = -1, sums_ = -1, weights_ = -1, rows_ = -1, result_planes_ = -1;
};

}  // namespace mase::engine
