// SPDX-License-Identifier: Apache-2.0
#include "mase/train/schedule.h"

#include <cmath>

#include "mase/io/networks/checkpoint.h"
#include "support/support.h"

namespace mase::schedules_test {
namespace {

SchedulePosition at(double base, int64_t epoch, int64_t step, int64_t epochs, int64_t steps) {
  return {base, epoch, step, epochs, steps};
}

TEST(Schedules, CosineEqualsPyTorchs) {
  struct Case {
    const char* file;
    double base, low;
  };
  for (const Case& c :
       {Case{"trajectory_jsc-toy_adam", 1e-2, 1e-6}, Case{"trajectory_jsc-toy_adamw", 1e-2, 1e-6},
        Case{"trajectory_jsc-toy_sgd", 5e-2, 0}}) {
    const Schedule schedule("cosine", Dict{{"eta_min", c.low}});
    const TensorTable golden =
        load_safetensors(test::golden_path(fmt::format("torch/{}.safetensors", c.file)));
    for (const auto& [name, rates] : golden) {
      if (name != "lr") continue;
      for (int64_t step = 0; step < 40; ++step)
        EXPECT_NEAR(schedule.rate(at(c.base, step / 10, step, 4, 40)), rates.item(step),
                    1e-7 * c.base + 1e-9)
            << c.file << " step " << step;
    }
  }
}

TEST(Schedules, CosineDefaults) {
  const Schedule schedule("cosine", Dict{});
  EXPECT_DOUBLE_EQ(schedule.rate(at(0.1, 0, 0, 10, 100)), 0.1);
  EXPECT_NEAR(schedule.rate(at(0.1, 5, 50, 10, 100)), (0.1 + 1e-6) / 2, 1e-12);
  EXPECT_NEAR(schedule.rate(at(0.1, 10, 100, 10, 100)), 1e-6, 1e-15);
}

TEST(Schedules, Constant) {
  const Schedule schedule("constant", Dict{});
  EXPECT_EQ(schedule.rate(at(0.3, 7, 70, 10, 100)), 0.3);
}

TEST(Schedules, StepDropsEveryThirdEpoch) {
  const Schedule schedule("step", Dict{{"step_size", 3}, {"gamma", 0.5}});
  EXPECT_DOUBLE_EQ(schedule.rate(at(1, 2, 0, 10, 100)), 1);
  EXPECT_DOUBLE_EQ(schedule.rate(at(1, 3, 0, 10, 100)), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate(at(1, 9, 0, 10, 100)), 0.125);
}

TEST(Schedules, LinearWarmupRisesAndStays) {
  const Schedule schedule("linear-warmup", Dict{{"start_factor", 0.5}, {"total_iters", 4}});
  const double wanted[] = {0.5, 0.625, 0.75, 0.875, 1, 1, 1};
  for (int64_t step = 0; step < 7; ++step)
    EXPECT_DOUBLE_EQ(schedule.rate(at(1, 0, step, 1, 100)), wanted[step]);
}

TEST(Schedules, OneCycleEqualsPyTorchs) {
  // torch.optim.lr_scheduler.OneCycleLR(max_lr=0.1, total_steps=10)
  const double wanted[] = {0.004,
                           0.052,
                           0.1,
                           0.09504846320134738,
                           0.0811745653949763,
                           0.06112620219362893,
                           0.03887419780637107,
                           0.0188258346050237,
                           0.004951936798652629,
                           4e-07};
  const Schedule schedule("one-cycle", Dict{});
  for (int64_t step = 0; step < 10; ++step)
    EXPECT_NEAR(schedule.rate(at(0.1, 0, step, 1, 10)), wanted[step], 1e-15) << step;
}

TEST(Schedules, WarmupStepsComeBeforeAnySchedule) {
  for (const ScheduleRecord* record : Registry<ScheduleRecord>::instance().all()) {
    const Schedule plain(record->name, Dict{}), warmed(record->name, Dict{}, 10);
    EXPECT_NEAR(warmed.rate(at(1, 0, 0, 10, 100)), plain.rate(at(1, 0, 0, 10, 100)) / 11, 1e-12);
    EXPECT_EQ(warmed.rate(at(1, 1, 10, 10, 100)), plain.rate(at(1, 1, 10, 10, 100)));
  }
}

TEST(Schedules, AreFiniteAndNotNegativeEverywhere) {
  for (const ScheduleRecord* record : Registry<ScheduleRecord>::instance().all())
    for (const int64_t total : {1, 2, 3, 50})
      for (int64_t step = 0; step < total; ++step) {
        const double rate = Schedule(record->name, Dict{}).rate(at(0.1, step, step, total, total));
        EXPECT_TRUE(std::isfinite(rate) && rate >= 0)
            << record->name << " " << total << " " << step;
      }
}

TEST(Schedules, CosineNeverRises) {
  const Schedule schedule("cosine", Dict{{"eta_min", 1e-3}});
  SchedulePosition at{.base = 1e-5, .max_epochs = 10, .total_steps = 100};
  const ScheduleRecord& record = Registry<ScheduleRecord>::instance().get("cosine");
  EXPECT_NE(record.notice(Dict{{"eta_min", 1e-3}}, 1e-5).find("eta_min"), std::string::npos);
  for (at.epoch = 0; at.epoch < 10; ++at.epoch) EXPECT_DOUBLE_EQ(schedule.rate(at), 1e-5);
  EXPECT_EQ(record.notice(Dict{{"eta_min", 1e-3}}, 1e-2), "");
}

TEST(Schedules, RatesThatOverflowAreErrors) {
  const SchedulePosition at{.base = 1, .max_epochs = 400, .total_steps = 4000};
  EXPECT_THROW(Schedule("step", Dict{{"step_size", 1}, {"gamma", 10.0}}).check(at), Error);
  EXPECT_NO_THROW(Schedule("step", Dict{{"step_size", 1}, {"gamma", 0.5}}).check(at));
  EXPECT_THROW(Schedule("constant", Dict{}).check({.base = 1e300}), Error);
  EXPECT_THROW(Schedule("constant", Dict{}, INT64_MAX), Error);
}

}  // namespace
}  // namespace mase::schedules_test
