// SPDX-License-Identifier: Apache-2.0
// abs_mean: the mean of absolute values.
#include <cmath>

#include "mase/passes/statistics/statistic.h"

namespace mase::abs_mean_statistic {
namespace {

class AbsMean : public GroupedStatistic {
 public:
  using GroupedStatistic::GroupedStatistic;

  Value compute() const override {
    std::vector<double> means;
    for (const double sum : sums_) means.push_back(sum / static_cast<double>(count()));
    return Dict{{"abs_mean", grouping().shaped(means)}, {"count", count()}};
  }

 private:
  void start(int64_t groups) override { sums_.assign(static_cast<size_t>(groups), 0); }
  void take(const float* sample) override {
    grouping().each(sample, [&](int64_t group, float value) {
      sums_[static_cast<size_t>(group)] += std::abs(static_cast<double>(value));
    });
  }
  std::vector<double> sums_;
};

const Register<StatisticRecord> registered{{
    .name = "abs_mean",
    .summary = "Mean of absolute values",
    .schema = {{device_field(), dims_field()}},
    .make = [](const Value& args) { return std::make_unique<AbsMean>(args); },
}};

}  // namespace
}  // namespace mase::abs_mean_statistic
