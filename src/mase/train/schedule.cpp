// SPDX-License-Identifier: Apache-2.0
#include "mase/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mase {

Schedule::Schedule(const std::string& name, const Value& arguments, int64_t warmup_steps)
    : record_(&Registry<ScheduleRecord>::instance().get(name)),
      arguments_(validate(arguments, record_->arguments, name)),
      warmup_steps_(warmup_steps) {
  if (warmup_steps_ < 0 || warmup_steps_ > INT64_C(1) << 53)
    throw Error("--warmup-steps", fmt::format("{} is no number of steps", warmup_steps_));
}

void Schedule::check(const SchedulePosition& whole) const {
  // Epochs and steps at even distances, both ends among them.
  constexpr int64_t most = 1000;
  const int64_t points = std::min(most, std::max(whole.max_epochs, whole.total_steps));
  for (int64_t i = 0; i <= points; ++i) {
    SchedulePosition at = whole;
    const double share = points > 0 ? static_cast<double>(i) / static_cast<double>(points) : 0;
    at.epoch = static_cast<int64_t>(share * static_cast<double>(whole.max_epochs - 1));
    at.step = static_cast<int64_t>(share * static_cast<double>(whole.total_steps - 1));
    const double rate = this->rate(at);
    if (!std::isfinite(rate) || rate < 0 || rate > std::numeric_limits<float>::max())
      throw Error(
          "--schedule",
          fmt::format("{} makes the learning rate {} in epoch {}", record_->name, rate, at.epoch),
          "choose smaller factors");
  }
}

double Schedule::rate(const SchedulePosition& at) const {
  const double rate = record_->rate(arguments_, at);
  if (at.step >= warmup_steps_) return rate;
  return rate * static_cast<double>(at.step + 1) / static_cast<double>(warmup_steps_ + 1);
}

}  // namespace mase
