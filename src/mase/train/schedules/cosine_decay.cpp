// SPDX-License-Identifier: Apache-2.0
// Half a cosine over the steps of the run, down to a share of the rate: what language models are
// usually trained with, behind a warm-up.
#include <cmath>
#include <numbers>

#include "mase/train/schedule.h"

namespace mase::cosine_decay_schedule {
namespace {

double rate(const Value& arguments, const SchedulePosition& at) {
  const double floor = arguments["floor"].as_double();
  const double share = static_cast<double>(at.step) / static_cast<double>(at.total_steps);
  return at.base * (floor + (1 - floor) * (1 + std::cos(std::numbers::pi * share)) / 2);
}

const Register<ScheduleRecord> registered{{
    .name = "cosine-decay",
    .summary = "half a cosine over the steps of the run, down to a share of the rate",
    .arguments = {{{.name = "floor",
                    .type = FieldType::number,
                    .default_value = 0.1,
                    .help = "the share of the rate that is left at the end",
                    .minimum = 0,
                    .maximum = 1}}},
    .rate = rate,
}};

}  // namespace
}  // namespace mase::cosine_decay_schedule
