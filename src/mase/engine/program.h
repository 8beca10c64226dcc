// SPDX-License-Identifier: Apache-2.0
// A graph compiled for one mode and a largest batch: lowered, differentiated, fused, with every
// buffer planned into one arena and every kernel bound. Running it allocates nothing, but where an
// op runs by its own code. A smaller last batch runs the same program. Features are rows and all
// else, the batch first of all, runs along the vector lanes (axes.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mase/engine/batch.h"
#include "mase/ir/graph.h"
#include "mase/ir/lowering.h"

namespace mase {

// What a loss compares outputs with: class numbers, the same as rows of 0 and 1, or numbers.
enum class TargetKind { classes, one_hot, numbers };

// How the first output and its target become the scalar that is minimised. Losses are records of
// train/loss.h, which makes these.
struct LossFunction {
  std::string name = {};
  TargetKind target = TargetKind::classes;
  std::function<Slot(Lowering& to, Slot output, Slot target)> lower = {};
  explicit operator bool() const { return static_cast<bool>(lower); }
};

struct CompileOptions {
  bool training = false;
  int64_t batch_size = 256;  // the largest batch
  LossFunction loss = {};    // training programs and evaluating ones; empty: none
  int threads = 1;
  uint64_t seed = 0;            // dropout and stochastic rounding
  bool fold_batch_norm = true;  // inference only
  // Training: batch-norm uses and keeps its running statistics (the last epochs of a QAT run).
  bool freeze_batch_norm = false;
  // Data-parallel training: adds these numbers up over all processes, in place. The batch is then
  // one shard of the global batch: batch-norm statistics are the global ones if `sync_batch_norm`,
  // and loss and gradients are this shard's part of those of the global mean loss, to be summed
  // over the processes. `correct` counts this shard.
  std::function<void(std::span<double> sums)> all_reduce = {};
  bool sync_batch_norm = true;
  std::vector<NodeId> keep = {};  // nodes whose results can be read after a run
  // Inference on a batch of one: tensors whose values have one position have their features side by
  // side, without room for other samples. For texts that go on token by token.
  bool one_position = false;
};

// One trainable parameter as optimisers see it: flat views into the program's own memory.
struct ParameterView {
  std::string name;  // "seq_blocks.2.weight"
  Shape shape;
  std::span<float> value;
  std::span<float> gradient;
  std::span<const float> mask;  // empty: not pruned
};

struct StepResult {
  double loss = 0;  // mean over the batch
  // What that mean divides by, over all processes: samples, or the sum of their classes' weights.
  // The loss of a split is the mean of those of its batches with these weights.
  double weight = 0;
  int64_t correct = 0;  // arg-max hits, where targets are classes
};

class Program {
 public:
  static Program compile(const Graph& graph, const CompileOptions& options);
  // Another program of the same graph that works on the parameters and buffers of this one: what
  // one writes, the other reads. Either may outlive the other.
  Program sharing(const CompileOptions& options) const;
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  // Forward only. Loss and hits are computed if the program has a loss and the batch a target.
  StepResult forward(const Batch& batch);
  // Forward and backward. Gradients are those of the mean loss, overwritten, or added to what is
  // there when `accumulate` is set. Running statistics are updated.
  StepResult forward_backward(const Batch& batch, bool accumulate = false);

  // Row-major result of output `index` (or of a kept node) after a run: [size][features...].
  void read_output(int index, float* out) const;
  Shape output_shape(int index) const;  // with the largest batch in front
  void read_node(NodeId node, float* out) const;

  std::vector<ParameterView>& parameters();  // trainable ones only, in state-dict order
  // All values, one contiguous block, each parameter aligned to 64 bytes; what lies between them is
  // zero and has zero gradients, so an optimiser may sweep over the whole block.
  std::span<float> parameter_memory();
  std::span<float> gradient_memory();                // laid out like the values
  std::span<float> buffer_memory();                  // running statistics and the like
  std::span<float> buffer(const std::string& name);  // one of them
  // After values were written from outside, optimisers included: derived values (folded or
  // quantised weights) are computed again by the next run, of sharing programs too.
  void parameters_changed();
  TensorTable state() const;          // current parameters and buffers, state-dict order
  void write_to(Graph& graph) const;  // the same, into a graph of this structure
  void load_from(const Graph& graph);

  std::string dump() const;  // steps, kernels, buffer offsets, arena size
  size_t arena_bytes() const;
  const CompileOptions& options() const;

 private:
  Program();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What a graph is after a stage of its compilation, as text: primitives when it is lowered and when
// they are fused, with the rules that did it; steps, without their places in memory, when it is
// differentiated.
enum class Stage { lower, fuse, differentiate };
std::string stage_text(const Graph& graph, const CompileOptions& options, Stage stage);

// The most rows whose values of all nodes fit into 256 MB, between 1 and `most`: large images are
// computed few at a time.
int64_t rows_at_once(const Graph& graph, int64_t most);

// Shorthands for analyses: evaluation mode, any number of rows, in batches.
std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs, int threads = 1);
// Calls `observe` with the row-major result of each listed node, batch by batch, in order.
void run_observed(const Graph& graph, const std::vector<Tensor>& inputs,
                  const std::vector<NodeId>& nodes, int64_t most_rows,
                  const std::function<void(NodeId node, const Tensor& result)>& observe);

}  // namespace mase
