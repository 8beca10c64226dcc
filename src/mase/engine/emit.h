// SPDX-License-Identifier: Apache-2.0
// What forward.cpp and backward.cpp share: the geometry of primitives and the kernels that serve
// both directions.
#pragma once

#include <map>
#include <memory>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/plan.h"
#include "mase/engine/tile.h"

namespace mase::engine {

// A tensor as the run-time code needs to know it.
struct TensorView {
  Shape shape;
  Layout layout = Layout::batch;
  int64_t rows = 0, stride = 1;
  std::function<Shape(int64_t n)> shape_at = {};  // free tensors
};
TensorView view_of(const Plan& plan, int tensor);
Array read_array(const float* data, const TensorView& view, const Run& run);
void write_array(const Array& array, float* data, const TensorView& view, const Run& run,
                 bool accumulate);

struct MapOperands {
  std::vector<std::vector<int32_t>> index;  // row of each operand; empty: the same
  std::vector<bool> scalar;                 // one value per row
  std::vector<int64_t> stride;
  bool flat = false;  // every row of every operand is the row of the result
};
MapOperands map_operands(const Plan& plan, const std::vector<int>& operands, int out);
Kernel map_kernel(const Plan& plan, std::shared_ptr<const TileProgram> program,
                  const std::vector<int>& operands, int out, const Memory& memory);

struct LinearGeometry {
  kernels::LinearShape shape;
  int64_t positions;
};
LinearGeometry linear_geometry(const Plan& plan, const Primitive& p);

struct ConcatGeometry {
  int64_t outer = 1;
  std::vector<int64_t> rows;  // of each part, per outer index
};
ConcatGeometry concat_geometry(const Plan& plan, const Primitive& p);

struct AxisGeometry {
  int64_t outer = 1, length = 1, inner = 1;
};
AxisGeometry axis_geometry(const Plan& plan, const Primitive& p);

struct LayerGeometry {
  int64_t outer = 1, inner = 1;
};
LayerGeometry layer_geometry(const Plan& plan, const Primitive& p);

std::vector<int32_t> permuted_rows(const Plan& plan, const Primitive& p);  // source of each row
std::vector<int32_t> reduced_rows(const Plan& plan, const Primitive& p);   // target of each row

Kernel dropout_kernel(const Plan& plan, const Primitive& p, const float* in, float* out, int tensor,
                      bool accumulate);

// The arguments of an op's own eval or grad, copied to row-major double precision and back.
class CallArguments {
 public:
  CallArguments(const Plan& plan, const Primitive& p, const Memory& memory);
  void load(const Run& run, std::map<std::string, Array>* updates);
  void store(const std::map<std::string, Array>& updates, const Run& run);
  std::unique_ptr<OpCall> call;

 private:
  struct Source {
    std::string name;
    float* data;
    TensorView view;
    int64_t* counter;
    Array array;
  };
  const BoundCall& bound_;
  bool training_;
  uint64_t seed_;
  NodeId node_;
  std::vector<Source> inputs_, params_;
};

Step emit_matmul(Plan& plan, const Primitive& p);
Step emit_matmul_gradient(Plan& plan, const Primitive& p, int side, int gradient, int target,
                          bool accumulate);  // side 0: of a, 1: of b
Step emit_batch_norm(Plan& plan, int primitive);
// A place a gradient goes to; tensor -1: nowhere.
struct Target {
  int tensor = -1;
  bool accumulate = false;
};
Step emit_batch_norm_gradient(Plan& plan, const Primitive& p, int gradient, Target x, Target weight,
                              Target bias);

// Losses: what the batch says the outputs should be, and what becomes of the two.
inline const uint32_t* row_numbers(const Batch& batch) {  // null: consecutive
  return batch.rows.empty() ? nullptr : batch.rows.data();
}
Step emit_constant(const Primitive& p);
Step emit_target(Plan& plan, const Primitive& p);
Step emit_one_hot(Plan& plan, const Primitive& p);
Step emit_batch_mean(Plan& plan, const Primitive& p);
Step emit_batch_mean_gradient(Plan& plan, const Primitive& p, int gradient, Target x);
Step emit_cross_entropy(Plan& plan, const Primitive& p);
Step emit_cross_entropy_gradient(Plan& plan, const Primitive& p, int gradient, Target x);
// The loss itself leaves its gradient behind while it is computed: there is no step for it.
bool gradient_comes_forward(const Plan& plan, const Primitive& p);
void emit_loss_result(Plan& plan);  // what no step has said yet: the loss, the arg-max hits

// Rounding. A training program draws anew at each step from (seed, step, stream, piece), so threads
// and interruptions change nothing; evaluation always takes the format's draw 0.
Step emit_quantize(Plan& plan, const Primitive& p);
bool has_gradient_step(const Primitive& p);
Step emit_quantize_gradient(Plan& plan, const Primitive& p, int gradient, Target x, Target number);
// Formats count draws from the first value they are given: these have `first` samples before them.
void quantize_drawn_at(const Quantizer& quantizer, const float* in, float* out, const Shape& shape,
                       int64_t first, uint64_t draw);
uint64_t random_draw(uint64_t seed, uint64_t step, uint64_t stream, uint64_t piece);
uint64_t backward_stream(const Primitive& p, uint64_t index);  // of a product's operands
int unrounded(const Plan& plan, int tensor);                   // what was rounded to this tensor

// The tensor that receives the gradient of `tensor`, made when first asked for.
int gradient_of(Plan& plan, int tensor);

}  // namespace mase::engine
