// SPDX-License-Identifier: Apache-2.0
// Training that finds the sparsity of networks of tables along with the tables. After a first
// training whatever costs the loss least for the look-up tables it saves is taken away
// (table_moves.h) and the rest trained on, again and again, so that one run passes through networks
// from large to small. The best of each size, by the validation rows, are trained on with their
// widths as they are: the front. Shares of the classes that an ensemble gives to rows it has not
// seen (Hinton et al., 2015) may stand beside the labels.
#pragma once

#include <string>
#include <vector>

#include "mase/run/experiment.h"

namespace mase {

struct LearnTablesSpec {
  int64_t teachers = 16;  // networks of the ensemble; 0: labels alone
  int64_t teacher_epochs = 140;
  double teacher_share = 0.85;  // of the ensemble in what is learned
  int64_t start_epochs = 60;    // before anything is taken away
  double step = 0.04;           // of the cost, taken away at a time
  int64_t step_epochs = 250;    // after that
  int64_t points = 16;          // of the front, at most
  int64_t point_epochs = 600;   // of every point, with its widths
  double luts = 100;            // go on until the network is this small, by the moves' own prices
  double learning_rate = 3e-3;
  double smoothness = 1e-4;
};

struct LearnedTables {
  Graph graph;
  int64_t step = 0;                 // of the run
  int64_t tables = 0, inputs = 0;   // edges that are left, and features that are read
  double luts = 0, levels = 0;      // by the estimate for explicit carry chains
  double loss = 0;                  // on the validation rows, against what was learned
  double validation = 0, test = 0;  // accuracies of this very network
  std::string path = {};
};

struct LearnTablesResult {
  std::vector<LearnedTables> front;  // fewest LUTs first
  int64_t test_rows = 0;
  int64_t steps = 0;
  bool interrupted = false;
};

// Whether a network is one of table layers alone, which this and not learn_bits() is for.
bool is_table_network(const Graph& graph);

// As learn_bits(): with a folder every point is written to software/front/, the most accurate one
// by the validation rows to software/training_ckpts/best.mz, and a run that was stopped at any
// moment and is resumed ends in the same bits.
LearnTablesResult learn_tables(Experiment& experiment, const LearnTablesSpec& spec,
                               const Observer& observer, RunFolder* folder, bool resume = false);

}  // namespace mase
