// SPDX-License-Identifier: Apache-2.0
// Training that finds the widths of every weight and every feature along with the weights (HGQ, Sun
// et al., 2024): the loss plus beta times the bit operations of all products (ebops.h) is
// minimised, and beta rises from epoch to epoch, so that one run passes through networks from wide
// to narrow. The best of each size, by the validation rows, are kept and trained further with their
// widths as they are: the front. A width of 0 prunes.
#pragma once

#include <string>
#include <vector>

#include "mase/run/experiment.h"

namespace mase {

struct LearnBitsSpec {
  double first_beta = 1e-6, last_beta = 1e-3;
  double start_bits = 5;          // fraction bits of everything before training
  std::string overflow = "wrap";  // of results inside the network; inputs saturate in software
  int64_t points = 16;            // of the front, at most
  int64_t retrain_epochs = 30;    // of every point, with its widths; 0: none
};

struct LearnedPoint {
  Graph graph;  // in `integer` formats of single widths
  int64_t epoch = 0;
  double ebops = 0;
  int64_t weights = 0;              // that are not zero
  double loss = 0;                  // on the validation rows
  double validation = 0, test = 0;  // accuracies of this very network
  int64_t wrapped = 0;              // test rows whose outputs are others than without overflow
  std::string path = {};
};

struct LearnBitsResult {
  TrainOutcome outcome;
  std::vector<LearnedPoint> front;  // fewest bit operations first
  int64_t test_rows = 0;
};

// The experiment is prepared and has classes to learn. With a folder every point is written to
// software/front/, and the most accurate one, by the validation rows, to
// software/training_ckpts/best.mz. Until then the folder has what it takes to go on: a run that was
// stopped at any moment and is resumed ends in the same bits.
LearnBitsResult learn_bits(Experiment& experiment, const LearnBitsSpec& spec,
                           const TrainSpec& training, const Observer& observer, RunFolder* folder,
                           bool resume = false);

}  // namespace mase
