// SPDX-License-Identifier: Apache-2.0
// PyTorch's OneCycleLR (Smith and Topin, 2018) with cosine halves: up from base/25 to base over the
// first 30 % of the steps, then down to base/25/10^4.
#include <cmath>
#include <numbers>

#include "mase/base/fields.h"
#include "mase/train/schedule.h"

namespace mase::one_cycle_schedule {
namespace {

double between(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

double rate(const Value& arguments, const SchedulePosition& at) {
  const double start = at.base / arguments["div_factor"].as_double();
  const double end = start / arguments["final_div_factor"].as_double();
  const double total = static_cast<double>(at.total_steps);
  const double peak = arguments["pct_start"].as_double() * total - 1, last = total - 1;
  const double step = static_cast<double>(at.step);
  if (step <= peak) return between(start, at.base, peak > 0 ? step / peak : 1);
  return between(at.base, end, last > peak ? (step - peak) / (last - peak) : 1);
}

const Register<ScheduleRecord> registered{{
    .name = "one-cycle",
    .aliases = {"one_cycle"},
    .summary = "up to the rate given and down again, per step",
    .arguments = {{number_field("pct_start", "share of the steps that rise", 0.3).between(0, 1),
                   number_field("div_factor", "highest over first rate", 25.0).from(1),
                   number_field("final_div_factor", "first over last rate", 1e4).from(1)}},
    .rate = rate,
}};

}  // namespace
}  // namespace mase::one_cycle_schedule
