// SPDX-License-Identifier: Apache-2.0
// PyTorch's OneCycleLR (Smith and Topin, 2018) with cosine halves: up from base/25 to base over the
// first 30 % of the steps, then down to base/25/10^4.
#include <cmath>
#include <numbers>

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
    .arguments = {{{.name = "pct_start",
                    .type = FieldType::number,
                    .default_value = 0.3,
                    .help = "share of the steps that rise",
                    .minimum = 0,
                    .maximum = 1},
                   {.name = "div_factor",
                    .type = FieldType::number,
                    .default_value = 25.0,
                    .help = "highest over first rate",
                    .minimum = 1},
                   {.name = "final_div_factor",
                    .type = FieldType::number,
                    .default_value = 1e4,
                    .help = "first over last rate",
                    .minimum = 1}}},
    .rate = rate,
}};

}  // namespace
}  // namespace mase::one_cycle_schedule
