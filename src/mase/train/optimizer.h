// SPDX-License-Identifier: Apache-2.0
// Optimisers with PyTorch's formulas and defaults, over one contiguous block of parameters. An
// optimiser is one file in optimizers/ that registers one record.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/ir/graph.h"

namespace mase {

// One update of a block: the gradients are those of the mean loss, `state` holds one array per name
// in the record, zero before the first step.
struct UpdateStep {
  std::span<float> values;
  std::span<const float> gradients;
  std::vector<std::span<float>> state;
  double learning_rate = 0;
  int64_t step = 1;  // counted from 1
};

struct OptimizerRecord {
  static constexpr const char* kind = "optimizer";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema arguments = {};                // weight_decay and the optimiser's own
  Dict schedule_defaults = {};          // the schedule's numbers that differ with it, as in MASE
  std::vector<std::string> state = {};  // PyTorch's names: exp_avg, exp_avg_sq
  std::function<void(const Value& arguments, const UpdateStep& step)> update;
};

class Optimizer {
 public:
  // `arguments` are validated; `size` is the number of values in the block.
  Optimizer(const std::string& name, const Value& arguments, size_t size);

  void step(std::span<float> values, std::span<const float> gradients, double learning_rate);

  const std::string& name() const { return record_->name; }
  int64_t steps() const { return steps_; }

  // State by name, for checkpoints. Restoring wants the same optimiser and the same sizes.
  TensorTable state() const;
  void restore(const TensorTable& state, int64_t steps, const std::string& place);

 private:
  const OptimizerRecord* record_;
  Value arguments_;
  std::vector<Tensor> state_;
  UpdateStep update_;  // kept, so that a step allocates nothing
  int64_t steps_ = 0;
};

}  // namespace mase
