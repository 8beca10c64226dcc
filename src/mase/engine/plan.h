// SPDX-License-Identifier: Apache-2.0
// What a graph becomes on its way to a program: tensors and primitives (lower.cpp), rewritten in
// place (fuse.cpp), then steps (forward.cpp, backward.cpp) with their memory planned (arena.cpp).
//
// Layouts. A tensor whose first dimension is the batch is kept feature-major: `rows` rows (the
// product of the other dimensions, row-major among themselves) of `stride` floats, the batch along
// each. Everything that does not depend on the batch size is plain row-major, which is the same
// thing with one lane: kernels see (rows, stride, lanes) and need not know. Tensors that depend on
// the batch in another way are free: row-major, and only an op's own eval touches them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"

namespace mase::engine {

enum class Layout { batch, fixed, free };
enum class Place { arena, parameter, gradient, state };

struct TensorInfo {
  std::string name;
  Shape shape;  // at the largest batch
  Layout layout = Layout::batch;
  Place place = Place::arena;
  size_t offset = 0;            // in floats, within its place
  int view_of = -1;             // the same memory in another shape
  bool differentiable = false;  // a trained parameter, or computed from one
  bool labels = false;          // int32 class numbers in the place of floats
  bool constant = false;        // computed from parameters and buffers alone
  bool pinned = false;          // readable after a run
  NodeId node = -1;             // whose result it is
  int counter = -1;             // integer buffers: index of the counter

  Shape features() const;  // the shape without the batch
  int64_t rows() const;
};

enum class PrimitiveKind {
  gather,
  map,
  linear,
  matmul,
  reduce,
  permute,
  concat,
  batch_norm,
  layer_norm,
  softmax,
  dropout,
  quantize,
  constant,
  target,  // what the batch says the outputs should be
  one_hot,
  batch_mean,
  cross_entropy,
  call,  // the op's own eval and grad
};
const char* primitive_name(PrimitiveKind kind);

struct Primitive {
  PrimitiveKind kind;
  std::vector<int> in = {};
  int out = -1;
  NodeId node = -1;
  Expr expr = 0.0;                   // map
  ReduceKind reduce{};               // reduce
  std::vector<int64_t> dims = {};    // reduce, permute: of the features
  int64_t axis = 0;                  // concat, softmax: of the features; gather: the placeholder
  bool logarithm = false;            // softmax
  bool batch_statistics = false;     // batch_norm
  bool transposed = false;           // linear: the weight is [in, out]
  double number = 0;                 // eps, dropout probability
  std::optional<double> momentum{};  // batch_norm
  int weight = -1, bias = -1, running_mean = -1, running_var = -1, tracked = -1;
  const Quantizer* quantizer = nullptr;             // quantize; `weight` is its learned number
  uint64_t stream = 0;                              // quantize: of its random draws
  std::shared_ptr<const BoundCall> call = {};       // call
  std::vector<std::pair<std::string, int>> params;  // call
  int mean = -1, variance = -1, inverse = -1;       // batch_norm: kept for the gradient
  int share = -1;                                   // batch_mean: 1 / its divisor
  std::shared_ptr<const std::vector<float>> values = {};  // constant
  // Filled in by fuse.cpp.
  bool bias_cancels = false;  // linear: only a batch norm reads it, its bias has derivative 0
  bool relu = false;          // linear, batch_norm: max(0, result)
  const Quantizer* out_quantizer = nullptr;  // batch_norm: `out` holds the rounded result
  const Quantization* backward = nullptr;    // linear: formats of the products of the backward pass
  // The removed batch_norm that is multiplied into the weights (linear) or done to the samples as
  // they come in (gather: folded_weight is its scale).
  int folded = -1;
  int folded_weight = -1, folded_bias = -1;
  int gather = -1;  // linear: the removed gather whose samples it takes itself
  bool removed = false;
};

struct Run {
  int64_t n = 0;      // samples of this batch
  double global = 0;  // the same over all processes
  const Batch* batch = nullptr;
  const float* const* inputs = nullptr;  // the batch's tensor of each placeholder
  StepResult* result = nullptr;
};
using Kernel = std::function<void(const Run& run)>;

struct Memory {
  std::vector<float*> tensors;  // where each tensor begins
  std::vector<int64_t>* counters = nullptr;
  float* operator[](int tensor) const { return tensors[static_cast<size_t>(tensor)]; }
};

struct Step {
  std::string kernel, detail;
  std::vector<int> reads, writes;  // scratch is written
  std::function<Kernel(const Memory& memory)> bind;
  Kernel run = {};
  NodeId node = -1;
};

struct Parameter {
  std::string name;  // "seq_blocks.2.weight"
  int tensor = -1;
  DType dtype = DType::f32;
  bool trainable = false;
  Tensor mask = Tensor(Shape{0});
};

struct Plan {
  CompileOptions options;
  Graph graph;
  int64_t stride = 0;  // of the rows of batch tensors
  std::vector<TensorInfo> tensors;
  std::vector<Primitive> primitives;
  std::vector<Parameter> parameters;  // state-dict order, buffers too
  std::vector<int> node_result;       // tensor of each node
  std::vector<int> outputs;
  int loss = -1, target = -1;       // scalar that is minimised; what the batch gives for it
  size_t first_loss_primitive = 0;  // from here on only the loss needs them
  std::vector<int64_t> counters;    // integer buffers
  std::vector<int> gradient;        // tensor of the gradient of each tensor, or -1
  std::vector<Step> prepare;        // inference: what only depends on parameters
  std::vector<Step> forward, losses, backward;  // losses: only for batches that have targets
  size_t parameter_floats = 0, state_floats = 0, arena_floats = 0;

  TensorInfo& at(int tensor) { return tensors[static_cast<size_t>(tensor)]; }
  const TensorInfo& at(int tensor) const { return tensors[static_cast<size_t>(tensor)]; }
  int root(int tensor) const;  // through views
  int add(TensorInfo info);
  int64_t row_stride(int tensor) const { return at(tensor).layout == Layout::batch ? stride : 1; }
  int64_t lanes(int tensor, const Run& run) const {
    return at(tensor).layout == Layout::batch ? run.n : 1;
  }
  size_t floats(int tensor) const;  // memory it takes
  // Scratch of a step: `count` floats, alive during that step only.
  int scratch(const std::string& name, int64_t count);
};

void lower(Plan& plan);
void fuse(Plan& plan);
void share_straight_through(Plan& plan);  // one gradient for both sides of a quantiser
void emit_forward(Plan& plan);
void emit_backward(Plan& plan);
void place_tensors(Plan& plan);
std::string dump(const Plan& plan);

// Which row of an operand each row of the result uses; empty if it is the same one.
std::vector<int32_t> broadcast_rows(const Shape& result, const Shape& operand);

// Row-major copies of a tensor, for what works on whole tensors: [n][features...].
void to_row_major(const float* in, int64_t rows, int64_t stride, int64_t lanes, float* out);
void from_row_major(const float* in, int64_t rows, int64_t stride, int64_t lanes, float* out);

}  // namespace mase::engine
