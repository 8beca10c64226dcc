// SPDX-License-Identifier: Apache-2.0
// One step of the optimiser, and what happens to gradients before it: pruned weights stay zero,
// norms or values are clipped.
#pragma once

#include <string>

#include "mase/engine/program.h"
#include "mase/train/optimizer.h"
#include "mase/train/trainer.h"

namespace mase {

class WeightUpdate {
 public:
  WeightUpdate(Program& program, const TrainOptions& options);

  // The gradients are those of `accumulate` batches added up; of fewer at the end of an epoch,
  // which are divided by the same number, as Lightning does.
  void average_gradients(Program& program) const;
  void step(Program& program, double learning_rate);

  Optimizer& optimizer() { return optimizer_; }

 private:
  void apply_masks(Program& program, bool to_values) const;
  void clip(Program& program) const;

  Optimizer optimizer_;
  int64_t accumulate_;
  double clip_;
  bool clip_values_, masked_ = false;
};

}  // namespace mase
