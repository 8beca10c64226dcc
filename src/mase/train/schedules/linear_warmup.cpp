// SPDX-License-Identifier: Apache-2.0
// PyTorch's LinearLR: from a share of the rate up to all of it over some steps, then constant.
#include <algorithm>

#include "mase/base/fields.h"
#include "mase/train/schedule.h"

namespace mase::linear_warmup_schedule {
namespace {

double rate(const Value& arguments, const SchedulePosition& at) {
  const double start = arguments["start_factor"].as_double();
  const int64_t given = arguments["total_iters"].as_int();
  // Not told: a tenth of the run.
  const double iterations =
      static_cast<double>(given > 0 ? given : std::max<int64_t>(1, at.total_steps / 10));
  const double share = std::min(1.0, static_cast<double>(at.step) / iterations);
  return at.base * (start + (1 - start) * share);
}

const Register<ScheduleRecord> registered{{
    .name = "linear-warmup",
    .aliases = {"linear"},
    .summary = "rises linearly to the rate given, then stays",
    .arguments =
        {{number_field("start_factor", "share of the rate at the first step", 1.0 / 3)
              .between(0, 1),
          integer_field("total_iters", "steps of the rise; 0: a tenth of the run", 0).from(0)}},
    .rate = rate,
}};

}  // namespace
}  // namespace mase::linear_warmup_schedule
