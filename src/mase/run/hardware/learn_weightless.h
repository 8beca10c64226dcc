// SPDX-License-Identifier: Apache-2.0
// Training of weightless networks: what every table reads and holds (weightless_network.h).
#pragma once

#include "mase/run/experiment.h"
#include "mase/train/weightless/weightless_network.h"

namespace mase {

struct LearnedWeightless {
  Graph graph;
  int64_t epochs = 0;
  double loss = 0;                             // of the last epoch's training rows
  double train = 0, validation = 0, test = 0;  // accuracies of this very network
  int64_t test_rows = 0;
  double luts = 0, levels = 0;  // by the estimate, the arg-max apart
  std::string path = {};
  bool interrupted = false;
};

// Whether a network ends in counts of tables of bits.
bool is_weightless_network(const Graph& graph);

// With a folder the network is written to software/training_ckpts/best.mz; a run that was stopped
// at any moment and is resumed ends in the same bits. `shift` of the spec is that of the data set.
LearnedWeightless learn_weightless(Experiment& experiment, const WeightlessTraining& spec,
                                   const Observer& observer, RunFolder* folder,
                                   bool resume = false);

}  // namespace mase
