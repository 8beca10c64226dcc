// SPDX-License-Identifier: Apache-2.0
// From the rate given down to nothing, in a straight line over all steps: what transformers' and
// MASE's training call "linear".
#include <algorithm>

#include "mase/train/schedule.h"

namespace mase::linear_decay_schedule {
namespace {

double rate(const Value&, const SchedulePosition& at) {
  const double share = static_cast<double>(at.step) / static_cast<double>(at.total_steps);
  return at.base * std::max(0.0, 1 - share);
}

const Register<ScheduleRecord> registered{{
    .name = "linear-decay",
    .summary = "falls linearly to 0 over the run",
    .rate = rate,
}};

}  // namespace
}  // namespace mase::linear_decay_schedule
