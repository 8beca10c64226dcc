// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: weights, optimiser and position of one moment, and what the run is. A
// resumed run is held to the same data, optimiser and augmentation; where only its last bits may
// differ (another version, instruction set, number of processes), that is said.
#pragma once

#include <string>

#include "mase/train/optimizer.h"
#include "mase/train/trainer.h"

namespace mase {

// The run as it was at one moment, to be written then or later.
struct TrainingMoment {
  TensorTable weights, optimizer;
  int64_t parameters = 0;  // that are trained
  double learning_rate = 0;
  TrainState state;
};

class TrainingCheckpoint {
 public:
  TrainingCheckpoint(const Dataset& dataset, const TrainOptions& options,
                     const CheckpointNotes& notes, int processes);

  // To be called with the network whenever it gets other layers.
  void describe(const Graph& graph);

  // To be called before the network gets other layers.
  void write(const std::string& path, const TrainingMoment& moment) const;

  // The position `checkpoint` was written at; an Error if it is another run's. `notice` is set
  // where the bits may differ.
  TrainState position(const Checkpoint& checkpoint, const std::string& path,
                      std::string& notice) const;

 private:
  Dict run_;  // what is the same in every checkpoint of the run
  std::string dataset_;
};

}  // namespace mase
