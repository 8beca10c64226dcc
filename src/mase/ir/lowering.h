// SPDX-License-Identifier: Apache-2.0
// The vocabulary that ops lower to and the engine runs: an op file composed of it needs no kernel
// of its own and gets its gradient, fusion and memory plan for free. An op writes against this
// interface; engine/ implements it. What the vocabulary lacks is a primitive's own record, asked
// for by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/base/value.h"
#include "mase/ir/expr.h"

namespace mase {

// A tensor of the program being built. Negative: the engine has no primitive for this case; what is
// built on it is not there either, and the op's own eval runs instead.
using Slot = int;

enum class ReduceKind { sum, mean, max };
enum class PaddingMode { zeros, reflect, replicate, circular };
enum class PoolKind { max, mean };

// Windows that slide over the trailing dimensions of [N, C, positions...], one number for each.
struct Windows {
  std::vector<int64_t> kernel, stride, padding_before, padding_after, dilation;
};

class Lowering {
 public:
  virtual ~Lowering() = default;

  // Empty for what is not there. A copy: what is built next moves the tensors' table.
  virtual Shape shape(Slot slot) const = 0;
  virtual bool training() const = 0;
  // A parameter or buffer of the module being lowered; nothing if it has none of that name.
  virtual std::optional<Slot> parameter(const std::string& name) = 0;

  // A value inside the op, rounded as the format of that operand says; as it is if it has none.
  virtual Slot rounded(Slot x, const std::string& operand) = 0;

  // out = expr(operands), element by element, operands broadcast against each other.
  virtual Slot map(const Expr& expr, const std::vector<Slot>& operands) = 0;
  // x[..., in] * weight[out, in]^T + bias[out]
  virtual Slot linear(Slot x, Slot weight, std::optional<Slot> bias) = 0;
  // Batched matrix product with PyTorch's broadcasting of leading dimensions.
  virtual Slot matmul(Slot a, Slot b) = 0;
  virtual Slot reduce(ReduceKind kind, Slot x, const std::vector<int64_t>& dims,
                      bool keep_dims) = 0;
  virtual Slot reshape(Slot x, const Shape& shape) = 0;
  virtual Slot permute(Slot x, const std::vector<int64_t>& order) = 0;
  virtual Slot concat(const std::vector<Slot>& parts, int64_t dim) = 0;
  // `count` indices of a dimension: start, start + step, ...
  virtual Slot slice(Slot x, int64_t dim, int64_t start, int64_t step, int64_t count) = 0;
  // table[V, D] by whole numbers of any shape: their shape with D behind it.
  virtual Slot take(Slot table, Slot indices) = 0;

  struct Convolution {
    Windows windows;  // the kernel is the weight's; padding is what is added around x
    int64_t groups = 1;
    PaddingMode padding_mode = PaddingMode::zeros;
  };
  // x[N, C, ...], weight[O, C / groups, ...], bias[O].
  virtual Slot convolution(Slot x, Slot weight, std::optional<Slot> bias,
                           const Convolution& options) = 0;
  // Its gradient with respect to x as an operation: x[N, O, ...], weight[O, C / groups, ...] to a
  // result [N, C, `positions`...].
  virtual Slot transposed_convolution(Slot x, Slot weight, std::optional<Slot> bias,
                                      const Convolution& options, const Shape& positions) = 0;
  // Padding is no candidate for the maximum; the mean divides by the window's size, or by the part
  // of it that lies inside (`count_padding` false). `positions`: of the result.
  virtual Slot pool(PoolKind kind, Slot x, const Windows& windows, bool count_padding,
                    const Shape& positions) = 0;

  // Normalisation over the batch (and any trailing positions) of each channel, dim 1. Training
  // uses batch statistics and updates running_mean and running_var (unbiased variance).
  struct BatchNorm {
    std::optional<Slot> weight, bias, running_mean, running_var, batches_tracked;
    double eps = 1e-5;
    std::optional<double> momentum = 0.1;  // none: cumulative average
  };
  virtual Slot batch_norm(Slot x, const BatchNorm& options) = 0;
  // Normalisation over the last `dims` dimensions of each row.
  virtual Slot layer_norm(Slot x, int64_t dims, std::optional<Slot> weight,
                          std::optional<Slot> bias, double eps) = 0;
  virtual Slot softmax(Slot x, int64_t dim, bool logarithm) = 0;
  virtual Slot dropout(Slot x, double probability) = 0;  // identity in inference

  // What losses are made of besides.
  virtual Slot constant(const Shape& shape, const std::vector<float>& values) = 0;
  // Classes [batch] => [batch, classes]: 1 at the class, 0 elsewhere.
  virtual Slot one_hot(Slot labels, int64_t classes) = 0;
  // The sum of all values of x over the sum of `weights` (none: over the number of values), a
  // scalar. Both sums are over the batches of all processes that train together.
  virtual Slot batch_mean(Slot x, std::optional<Slot> weights = {}) = 0;
  // -log softmax(logits)[label], weighted by `class_weights` [classes], and its batch mean, in one
  // sweep over logits [batch, classes].
  virtual Slot cross_entropy(Slot logits, Slot labels, std::optional<Slot> class_weights) = 0;

  // One of the engine's primitives by name, for an op that none of the above computes well: its
  // record understands the attributes and says what comes out.
  virtual Slot primitive(const std::string& name, const Value& attributes,
                         const std::vector<Slot>& operands) = 0;
};

}  // namespace mase
