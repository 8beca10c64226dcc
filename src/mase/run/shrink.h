// SPDX-License-Identifier: Apache-2.0
// Shrinks a quantised network to a budget of hardware: weights lose signed digits, cheapest for the
// loss first, while the loss on the training rows stays within a limit. What it costs is the
// estimate of the optimised adder graph itself, not a proxy.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/run/hardware.h"

namespace mase {

struct ShrinkSpec {
  HardwareSpec network = {};  // with a data set
  double max_loss = 0.01;     // how much the training loss may rise, as a share of it
  double luts = 0;  // stop when the estimate is down to this; 0: as far as the loss allows
};

struct ShrinkStep {
  int64_t digits = 0;  // signed digits of all weights
  double luts = 0, levels = 0;
  double train_loss = 0;
};

struct ShrinkResult {
  Graph graph;
  Value contents;                          // what travels with it in an .mz
  std::vector<ShrinkStep> steps;           // the first is the network as it was
  double test_before = 0, test_after = 0;  // accuracy on the test rows
  int64_t test_rows = 0;
  std::string dataset;  // name and variant
  bool reached = true;  // the budget, if there was one
};
// `step` is told of every step as it is taken.
ShrinkResult shrink(const ShrinkSpec& spec,
                    const std::function<void(const ShrinkStep&)>& step = {});

// Digits of a whole number in the signed form without neighbours, and the number without its lowest
// one.
int signed_digit_count(int64_t number);
int64_t without_lowest_digit(int64_t number);

}  // namespace mase
