// SPDX-License-Identifier: Apache-2.0
#include "mase/train/schedule.h"

namespace mase {

Schedule::Schedule(const std::string& name, const Value& arguments, int64_t warmup_steps)
    : record_(&Registry<ScheduleRecord>::instance().get(name)),
      arguments_(validate(arguments, record_->arguments, name)),
      warmup_steps_(warmup_steps) {}

double Schedule::rate(const SchedulePosition& at) const {
  const double rate = record_->rate(arguments_, at);
  if (at.step >= warmup_steps_) return rate;
  return rate * static_cast<double>(at.step + 1) / static_cast<double>(warmup_steps_ + 1);
}

}  // namespace mase
