// SPDX-License-Identifier: Apache-2.0
// A graph compiled for one mode and a largest batch: lowered, differentiated, fused, with every
// buffer planned into one arena and every kernel bound. Running it allocates nothing. A smaller
// last batch runs the same program. Activations are kept feature-major, [features][batch], so that
// the batch runs along the vector lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

enum class LossKind { none, cross_entropy, mse, bce_with_logits };

struct CompileOptions {
  bool training = false;
  int64_t batch_size = 256;               // the largest batch
  LossKind loss = LossKind::none;         // training programs and evaluating ones
  std::vector<float> class_weights = {};  // cross-entropy only; empty: all one
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
  double loss = 0;      // mean over the batch
  int64_t correct = 0;  // arg-max hits (classification)
};

class Program {
 public:
  static Program compile(const Graph& graph, const CompileOptions& options);
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  // Inputs are row-major samples; the engine transposes while it gathers. Each placeholder has one
  // source matrix; `rows` picks the samples of this batch from all of them (null: 0, 1, 2, ...).
  struct Batch {
    std::vector<const float*> sources;    // one per placeholder, row-major [samples][features...]
    const uint32_t* rows = nullptr;       // batch_size row numbers, or null for consecutive rows
    int64_t first_row = 0;                // used when rows is null
    int64_t size = 0;                     // at most batch_size
    const int32_t* labels = nullptr;      // class of every source row (cross-entropy)
    const int32_t* own_labels = nullptr;  // instead: classes of this batch, in its order
    const float* targets = nullptr;       // row-major targets of every source row (other losses)
    uint64_t step = 0;                    // counter of the random draws
    // The row numbers of the batch after this one, if known: its samples, spread over the memory,
    // are fetched into the cache while this one is computed.
    std::span<const uint32_t> upcoming = {};
  };

  // Forward only. Loss and hits are computed if the program has a loss and the batch has labels.
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
  std::span<float> gradient_memory();  // laid out like the values
  // After values were written from outside, optimisers included: derived values (folded or
  // quantised weights) are computed again by the next run.
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

// Shorthands for analyses: evaluation mode, any number of rows, in batches.
std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs, int threads = 1);
// Calls `observe` with the row-major result of each listed node, batch by batch, in order.
void run_observed(const Graph& graph, const std::vector<Tensor>& inputs,
                  const std::vector<NodeId>& nodes, int64_t batch_size,
                  const std::function<void(NodeId node, const Tensor& result)>& observe);

}  // namespace mase
