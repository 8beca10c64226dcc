// SPDX-License-Identifier: Apache-2.0
// What a graph becomes on its way to a program: tensors and primitives (lower.cpp), rewritten in
// place (fuse.cpp), then steps (forward.cpp, backward.cpp) with their memory planned (arena.cpp).
//
// Layouts. A tensor whose first dimension is the batch is rows of lanes; its axes say which is
// which (axes.h). Everything that does not depend on the batch size is plain row-major, which is
// the same thing with one lane: kernels see (rows, stride, lanes) and need not know. Tensors that
// depend on the batch in another way are free: row-major, and only an op's own eval touches them.
#pragma once

#include <any>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "mase/engine/axes.h"
#include "mase/engine/epilogue.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/program.h"
#include "mase/ir/typed_graph.h"

namespace mase::engine {

enum class Layout { batch, fixed, free };
enum class Place { arena, parameter, gradient, state, packed };

struct TensorInfo {
  std::string name;
  Shape shape;  // at the largest batch
  Layout layout = Layout::batch;
  Axes axes = {};  // batch tensors
  Place place = Place::arena;
  size_t offset = 0;            // in floats, within its place
  int view_of = -1;             // the same memory in another shape
  bool differentiable = false;  // a trained parameter, or computed from one
  DType element = DType::f32;   // i32: class numbers in the place of floats
  // The format its values are numbers of, wherever they were moved since; the tensor that was
  // rounded to this one, on the quantiser's own result.
  const Quantizer* rounding = nullptr;
  int before_rounding = -1;
  // A parameter whose numbers stay in their blocks: it has no floats, only primitives that take
  // packed weights read it (PrimitiveRecord::takes_packed).
  PackedTypePtr packed = {};
  bool constant = false;     // computed from parameters and buffers alone
  bool pinned = false;       // readable after a run
  NodeId node = -1;          // whose result it is
  int64_t sample_lanes = 1;  // positions(), kept for the loop by place_tensors

  Shape row_shape() const;  // the sizes of the row axes, in their order
  int64_t rows() const;
  int64_t positions() const;  // lanes of one sample
  // Where an axis is among the row axes; -1: it is a lane.
  int row_place(int64_t axis) const;
};

struct PrimitiveRecord;

// One operation of the program. What only its record understands is its payload; the rest is what
// every rewrite needs to know.
struct Primitive {
  const PrimitiveRecord* record = nullptr;
  std::vector<int> in = {};
  int out = -1;
  int weight = -1, bias = -1;  // parameters, or what was computed from them
  std::any payload = {};
  Epilogue epilogue = {};  // what is done to the result before it is written
  NodeId node = -1;
  std::vector<std::pair<std::string, int>> params = {};  // further tensors that are read
  uint64_t stream = 0;                                   // of its random draws
  bool accumulate = false;  // added to what the result holds; has no bias, no epilogue
  bool of_loss = false;     // only the loss needs it
  bool removed = false;

  std::vector<int> reads() const;  // every tensor it reads; one twice where it does so twice
  template <class T>
  const T& as() const {
    return std::any_cast<const T&>(payload);
  }
  template <class T>
  T& as() {
    return std::any_cast<T&>(payload);
  }
  template <class T>
  bool is() const {
    return payload.type() == typeid(T);
  }
};

// Where a placeholder's samples are: row-major, those of these row numbers.
using kernels::Samples;

struct Run {
  int64_t n = 0;      // samples of this batch
  double global = 0;  // the same over all processes
  const Batch* batch = nullptr;
  const Samples* inputs = nullptr;  // of each placeholder
  StepResult* result = nullptr;
};
using Kernel = std::function<void(const Run& run)>;

struct Memory {
  std::vector<float*> tensors;              // where each tensor begins
  std::vector<const uint8_t*> blocks = {};  // of packed ones, whose floats are null
  std::vector<int64_t>* counters = nullptr;
  float* operator[](int tensor) const { return tensors[static_cast<size_t>(tensor)]; }
  float* at(int tensor) const { return tensor >= 0 ? (*this)[tensor] : nullptr; }
  const uint8_t* packed(int tensor) const { return blocks[static_cast<size_t>(tensor)]; }
};

struct Step {
  std::string kernel, detail;
  std::vector<int> reads, writes;  // scratch is written
  std::function<Kernel(const Memory& memory)> bind;
  Kernel run = {};
  NodeId node = -1;

  void read(std::initializer_list<int> tensors);  // those that are there
  void write(std::initializer_list<int> tensors);
};

// A step that runs body(run, from..., to...): the memory of what it reads, then of what it writes,
// each in its order, null where the tensor is -1.
template <size_t kReads, size_t kWrites, class Body>
Step make_step(std::string kernel, std::string detail, const int (&reads)[kReads],
               const int (&writes)[kWrites], Body body) {
  Step step{std::move(kernel), std::move(detail), {}, {}};
  for (const int tensor : reads) step.read({tensor});
  for (const int tensor : writes) step.write({tensor});
  step.bind = [body = std::move(body), in = std::to_array(reads),
               out = std::to_array(writes)](const Memory& memory) -> Kernel {
    std::array<const float*, kReads> from;
    std::array<float*, kWrites> to;
    for (size_t i = 0; i < kReads; ++i) from[i] = memory.at(in[i]);
    for (size_t i = 0; i < kWrites; ++i) to[i] = memory.at(out[i]);
    return [body, pointers = std::tuple_cat(from, to)](const Run& run) mutable {
      std::apply([&](auto... memory) { body(run, memory...); }, pointers);
    };
  };
  return step;
}

struct Parameter {
  std::string name;  // "seq_blocks.2.weight"
  int tensor = -1;
  DType dtype = DType::f32;
  bool trainable = false;
  Tensor mask = Tensor(Shape{0});
  int counter = -1;  // whole numbers: their exact value is this one of Plan::counters
};

struct Plan {
  CompileOptions options;
  bool keeps_packed = false;                // packed parameters stay so
  std::shared_ptr<const TypedGraph> typed;  // see analyse
  std::vector<TensorInfo> tensors;
  std::vector<Primitive> primitives;
  std::vector<std::string> fused;     // the rules that were applied, in their order
  std::vector<Parameter> parameters;  // state-dict order, buffers too
  std::vector<int> node_result;       // tensor of each node
  std::vector<int> outputs;
  int loss = -1, target = -1;     // scalar that is minimised; what the batch gives for it
  std::vector<int64_t> counters;  // integer buffers
  std::vector<int> gradient;      // tensor of the gradient of each tensor, or -1
  std::vector<Step> prepare;      // inference: what only depends on parameters
  std::vector<Step> forward, losses, backward;  // losses: only for batches that have targets
  size_t parameter_floats = 0, state_floats = 0, arena_floats = 0;

  const Graph& graph() const { return typed->graph(); }
  TensorInfo& at(int tensor) { return tensors[static_cast<size_t>(tensor)]; }
  const TensorInfo& at(int tensor) const { return tensors[static_cast<size_t>(tensor)]; }
  int root(int tensor) const;        // through views
  int counter_of(int tensor) const;  // index of the counter it is, or -1
  int add(TensorInfo info);
  int64_t row_stride(int tensor) const;  // floats from one row to the next
  int64_t lanes(int tensor, const Run& run) const {
    const TensorInfo& info = at(tensor);
    return info.layout == Layout::batch ? run.n * info.sample_lanes : 1;
  }
  size_t floats(int tensor) const;  // memory it takes
  // Scratch of a step: `count` floats, alive during that step only.
  int scratch(const std::string& name, int64_t count);
};

// Floats of a row that holds this many lanes. Rows begin at cache lines, and an odd number of lines
// apart: a power of two would map the same column of all rows to a few cache sets.
int64_t padded_lanes(int64_t lanes);

// Of a copy of the graph.
std::shared_ptr<const TypedGraph> analyse(const Graph& graph);

void lower(Plan& plan);
void fuse(Plan& plan);
std::vector<std::string> fusion_rules();
void share_straight_through(Plan& plan);  // one gradient for both sides of a quantiser
void emit_forward(Plan& plan);
void emit_backward(Plan& plan);
void emit(Plan& plan);  // all of it
// The same from the gradient of this result, which the caller writes.
void emit_backward_from(Plan& plan, int result);
void place_tensors(Plan& plan);
int64_t best_slice(const Plan& plan);  // samples to be run from end to end at a time
std::string dump(const Plan& plan);
std::string primitives_text(const Plan& plan);  // a line for each
std::string steps_text(const Plan& plan);       // the same of steps, before they have memory

// A tensor as the run-time code needs to know it.
struct TensorView {
  Shape shape;
  Layout layout = Layout::batch;
  Axes axes = {};
  int64_t rows = 0, stride = 1, positions = 1;
  std::function<Shape(int64_t n)> shape_at = {};  // free tensors

  int64_t lanes(int64_t n) const { return layout == Layout::batch ? n * positions : 1; }
  Shape shape_for(int64_t n) const;
  // Floats from one index of each dimension to the next, for a batch of n.
  void strides(int64_t n, int64_t* out) const;
};
TensorView view_of(const Plan& plan, int tensor);

inline const uint32_t* row_numbers(const Batch& batch) {  // null: consecutive
  return batch.rows.empty() ? nullptr : batch.rows.data();
}

// Whole tensors in row-major order, [n][features...], and back.
void to_row_major(const TensorView& view, const float* in, int64_t n, float* out);
void from_row_major(const TensorView& view, const float* in, int64_t n, float* out,
                    bool accumulate = false);

// Which row of an operand each row of the result uses; empty if it is the same one.
std::vector<int32_t> broadcast_rows(const Shape& result, const Shape& operand);

}  // namespace mase::engine
