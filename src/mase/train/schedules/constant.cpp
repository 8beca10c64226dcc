// SPDX-License-Identifier: Apache-2.0
// The rate the user gave, from beginning to end.
#include "mase/train/schedule.h"

namespace mase::constant_schedule {
namespace {

const Register<ScheduleRecord> registered{{
    .name = "constant",
    .summary = "always the rate given",
    .rate = [](const Value&, const SchedulePosition& at) { return at.base; },
}};

}  // namespace
}  // namespace mase::constant_schedule
