// SPDX-License-Identifier: Apache-2.0
// Cosine annealing per epoch (Loshchilov and Hutter, 2017), T_max = the number of epochs: PyTorch's
// CosineAnnealingLR in its closed form.
#include <cmath>
#include <numbers>

#include "mase/train/schedule.h"

namespace mase::cosine_schedule {
namespace {

double rate(const Value& arguments, const SchedulePosition& at) {
  const double low = arguments["eta_min"].as_double();
  const double t = static_cast<double>(at.epoch) / static_cast<double>(at.max_epochs);
  return low + (at.base - low) * (1 + std::cos(std::numbers::pi * t)) / 2;
}

const Register<ScheduleRecord> registered{{
    .name = "cosine",
    .summary = "half a cosine from the rate given down to eta_min, per epoch",
    .arguments = {{{.name = "eta_min",
                    .type = FieldType::number,
                    .default_value = 1e-6,
                    .help = "the lowest rate",
                    .minimum = 0}}},
    .rate = rate,
}};

}  // namespace
}  // namespace mase::cosine_schedule
