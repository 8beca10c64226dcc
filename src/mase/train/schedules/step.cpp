// SPDX-License-Identifier: Apache-2.0
// PyTorch's StepLR: every step_size epochs the rate is multiplied by gamma.
#include <cmath>

#include "mase/base/fields.h"
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
    .arguments =
        {{integer_field("step_size", "epochs between drops", 30).from(1).also({"step_size"}),
          number_field("gamma", "factor of a drop", 0.1).from(0).also({"gamma"})}},
    .rate = rate,
}};

}  // namespace
}  // namespace mase::step_schedule
