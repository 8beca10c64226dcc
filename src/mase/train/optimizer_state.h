// SPDX-License-Identifier: Apache-2.0
// An optimiser's state as PyTorch's checkpoints hold it: one tensor per parameter and name, where
// ours is one block per name over all parameters.
#pragma once

#include <string>

#include "mase/engine/program.h"
#include "mase/train/optimizer.h"

namespace mase {

TensorTable optimizer_state_tensors(const Optimizer& optimizer, Program& program, int64_t steps);
// `tensors` may hold others too; one of ours that does not fit is an error at `place`.
void restore_optimizer_state(Optimizer& optimizer, Program& program, const TensorTable& tensors,
                             int64_t steps, const std::string& place);

}  // namespace mase
