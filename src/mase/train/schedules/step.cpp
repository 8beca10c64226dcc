// SPDX-License-Identifier: Apache-2.0
// PyTorch's StepLR: every step_size epochs the rate is multiplied by gamma.
#include <cmath>

#include "mase/train/schedule.h"

namespace mase::step_schedule {
namespace {

double rate(const Value& arguments, const SchedulePosition& at) {
  const int64_t drops = at.epoch / arguments["step_size"].as_int();
  return at.base * std::pow(arguments["gamma"].as_double(), static_cast<double>(drops));
}

const Register<ScheduleRecord> registered{{
    .name = "step",
    .summary = "drops by the factor gamma every step_size epochs",
    .arguments = {{{.name = "step_size",
                    .type = FieldType::integer,
                    .default_value = 30,
                    .help = "epochs between drops",
                    .minimum = 1,
                    .aliases = {"step_size"}},
                   {.name = "gamma",
                    .type = FieldType::number,
                    .default_value = 0.1,
                    .help = "factor of a drop",
                    .minimum = 0,
                    .aliases = {"gamma"}}}},
    .rate = rate,
}};

}  // namespace
}  // namespace mase::step_schedule
