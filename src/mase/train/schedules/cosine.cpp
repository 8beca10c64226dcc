// SPDX-License-Identifier: Apache-2.0
// Cosine annealing per epoch (Loshchilov and Hutter, 2017), T_max = the number of epochs: PyTorch's
// CosineAnnealingLR in its closed form.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "mase/base/fields.h"
#include "mase/train/schedule.h"

namespace mase::cosine_schedule {
namespace {

double rate(const Value& arguments, const SchedulePosition& at) {
  // It falls or stays: a rate below eta_min would otherwise rise.
  const double low = std::min(arguments["eta_min"].as_double(), at.base);
  const double t = static_cast<double>(at.epoch) / static_cast<double>(at.max_epochs);
  return low + (at.base - low) * (1 + std::cos(std::numbers::pi * t)) / 2;
}

std::string notice(const Value& arguments, double base) {
  const double low = arguments["eta_min"].as_double();
  if (low <= base) return "";
  return fmt::format("cosine: eta_min {:g} is above the learning rate: the rate stays {:g}", low,
                     base);
}

const Register<ScheduleRecord> registered{{
    .name = "cosine",
    .summary = "half a cosine from the rate given down to eta_min, per epoch",
    .arguments = {{number_field("eta_min", "the lowest rate", 1e-6).from(0).also({"eta_min"})}},
    .rate = rate,
    .notice = notice,
}};

}  // namespace
}  // namespace mase::cosine_schedule
