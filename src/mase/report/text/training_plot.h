// SPDX-License-Identifier: Apache-2.0
// The curves of a training run as text: loss and accuracy, training beside validation.
#pragma once

#include <string>
#include <vector>

#include "mase/report/text/plot.h"

namespace mase {

// `curves` by the names of metrics.csv (train_loss_step, train_loss_epoch, val_loss_epoch, ...);
// what is absent is left out, and nothing at all gives "".
std::string plot_training(const std::vector<Curve>& curves, const PlotStyle& style);

}  // namespace mase
