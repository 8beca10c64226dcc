// SPDX-License-Identifier: Apache-2.0
// Shrinks a quantised network to a budget of hardware: features lose bits, or leave with their
// neurons, and weights lose signed digits, cheapest for the loss first, while the loss on the
// training rows stays within a limit; between rounds weights are trained further within the digits
// they have left. What it costs is the estimate of the optimised adder graph itself, not a proxy.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/run/hardware/hardware.h"

namespace mase {

struct ShrinkSpec {
  HardwareSpec network = {};  // with a data set
  double max_loss = 0.01;     // how much the training loss may rise, as a share of it
  // Stop when the estimate is down to these; 0: as far as the loss allows.
  double luts = 0, delay_ns = 0;
  int64_t rounds = 4;           // of taking away and training further
  int64_t retrain_epochs = 20;  // 0: weights are not trained
  double learning_rate = 2e-3;
  std::string designs = {};  // a folder for the front, each network emitted and proved; empty: none
};

struct ShrinkStep {
  std::string what = {};  // "as it was", "bits", "digits", "retrained"
  int64_t digits = 0;     // signed digits of all weights
  int64_t bits = 0;       // of all features that layers take
  double luts = 0, levels = 0, delay_ns = 0;
  double train_loss = 0;
  double validation = 0;  // accuracy on the validation rows
};

struct ShrinkPoint {
  Graph graph;
  ShrinkStep step;
  double test = 0;          // accuracy on the test rows
  std::string folder = {};  // the design, and what was proved of it
  std::string proof = {};
};

struct ShrinkResult {
  Graph graph;
  Value contents;                  // what travels with it in an .mz
  std::vector<ShrinkStep> steps;   // the first is the network as it was
  std::vector<ShrinkPoint> front;  // fewest LUTs first, each with a smaller loss than those before
  double test_before = 0, test_after = 0;  // accuracy on the test rows
  int64_t test_rows = 0;
  std::string dataset;  // name and variant
  bool reached = true;  // the budgets, if there were any
};

// Told of things as they happen; any may be left out.
struct ShrinkObserver {
  std::function<void(const ShrinkStep&)> step = {};
  // All but the designs is there: what is kept now is kept whatever becomes of them.
  std::function<void(const ShrinkResult&)> shrunk = {};
  std::function<void(const ShrinkPoint&)> emitted = {};
};
ShrinkResult shrink(const ShrinkSpec& spec, const ShrinkObserver& observer = {});

}  // namespace mase
