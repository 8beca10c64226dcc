// SPDX-License-Identifier: Apache-2.0
// What a run that diverged says: what happened, and what to try.
#pragma once

#include <string>

#include "mase/data/dataset.h"
#include "mase/train/trainer.h"

namespace mase {

// Features near the limit of float32 overflow in the first products, at any learning rate: then the
// feature is named, not the rate.
void explain_divergence(TrainOutcome& outcome, const Dataset& data, std::string message);

}  // namespace mase
