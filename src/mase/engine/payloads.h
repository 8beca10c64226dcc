// SPDX-License-Identifier: Apache-2.0
// What the primitives carry that lowering fills in and rewrites look at.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "mase/engine/plan.h"

namespace mase::engine {

// The samples of a placeholder, from the caller's row-major memory.
struct GatherPayload {
  size_t placeholder = 0;
};

struct MapPayload {
  Expr expr = 0.0;
};

struct LinearPayload {
  bool transposed = false;  // the weight is [in, out]
  // Formats of the products of the backward pass; params then begin with the unrounded input.
  const Quantization* backward = nullptr;
  bool bias_cancels = false;  // only a batch norm reads it, its bias has derivative 0
};

struct WidenPayload {};         // a packed parameter as floats
struct PackedLinearPayload {};  // weights [out, in], as they are packed
struct PackedTakePayload {};    // of a packed table

struct ConvolutionPayload {
  Lowering::Convolution options;
  bool transposed = false;
  bool transforms = true;                  // whether its sums may be computed in another order
  const Quantization* backward = nullptr;  // as a linear layer's
  bool bias_cancels = false;
};

// Sums of the second operand times the first, for the weights of the convolution between them.
struct ConvolutionWeightsPayload {
  Lowering::Convolution options;
  bool transposed = false, transforms = true;
};

// The weights of a convolution with inputs and outputs exchanged and the taps in reverse.
struct TurnTapsPayload {
  int64_t groups = 1;
};

// The sums over all but one dimension, which is the innermost of the rows.
struct LaneSumsPayload {
  size_t dim = 1;
};

// Sums of the second operand times the first, for the weights of the linear layer between them.
struct LinearWeightsPayload {
  bool transposed = false;
};

struct PoolPayload {
  PoolKind kind = PoolKind::max;
  Windows windows;
  bool count_padding = true;
};

struct MatmulPayload {};          // both operands flat: the samples multiply side by side
struct LaneMatmulPayload {        // each sample's own product, its positions along the lanes
  bool right_rows_are_k = false;  // rows of b: the summed dimension; else the result's
};

struct ReducePayload {
  ReduceKind kind = ReduceKind::sum;
  std::vector<int> rows;  // places of the reduced axes among the rows; empty: all positions
};

struct PermutePayload {  // tensors without a batch
  std::vector<int64_t> order;
};

struct RelayoutPayload {};
struct ConcatPayload {
  int place = 0;  // of the axis among the rows
};
struct SlicePayload {
  size_t dim = 0;
  int64_t start = 0, step = 1;
};
struct TakePayload {
  int64_t untrained = -1;  // a row that gets no gradient
};

struct BatchNormPayload {
  int running_mean = -1, running_var = -1, tracked = -1;
  double eps = 1e-5;
  std::optional<double> momentum{};
  bool batch_statistics = false;
  int mean = -1, variance = -1, inverse = -1;  // kept for the gradient
};

struct LayerNormPayload {
  int64_t dims = 1;
  double eps = 1e-5;
};

struct SoftmaxPayload {
  int place = 0;  // of the axis among the rows
  bool logarithm = false;
};

struct DropoutPayload {
  double probability = 0;
};

struct ConstantPayload {
  std::shared_ptr<const std::vector<float>> values;
};
struct TargetPayload {};
struct OneHotPayload {};
struct BatchMeanPayload {
  int share = -1;  // 1 / its divisor
};
struct CrossEntropyPayload {};

struct QuantizePayload {
  const Quantizer* quantizer = nullptr;  // the primitive's weight is its learned number
};

struct CallPayload {
  std::shared_ptr<const BoundCall> call;
};

}  // namespace mase::engine
