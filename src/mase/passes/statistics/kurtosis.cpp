// SPDX-License-Identifier: Apache-2.0
// kurtosis: how heavy the tails are (0 for a normal distribution), with mean, variance, skewness.
#include "mase/passes/statistics/moments.h"
#include "mase/passes/statistics/statistic.h"

namespace mase::kurtosis_statistic {
namespace {

class Kurtosis : public GroupedStatistic {
 public:
  using GroupedStatistic::GroupedStatistic;

  Value compute() const override {
    std::vector<double> means, variances, skews, tails;
    for (const Moments& group : groups_) {
      const double n = static_cast<double>(group.n), variance = group.population_variance();
      means.push_back(group.mean);
      variances.push_back(group.sample_variance());
      skews.push_back(group.m3 / n / std::pow(variance, 1.5));
      tails.push_back(group.m4 / n / (variance * variance) - 3);
    }
    const bool few = count() < 2;
    return Dict{{"mean", grouping().shaped(means)},
                {"variance", few ? Value("NA") : grouping().shaped(variances)},
                {"skewness", few ? Value("NA") : grouping().shaped(skews)},
                {"kurtosis", few ? Value("NA") : grouping().shaped(tails)},
                {"count", count()}};
  }

 private:
  void start(int64_t groups) override { groups_.assign(static_cast<size_t>(groups), {}); }
  void take(const float* sample) override {
    grouping().each(sample, [&](int64_t group, float value) {
      groups_[static_cast<size_t>(group)].add(value);
    });
  }
  std::vector<Moments> groups_;
};

const Register<StatisticRecord> registered{{
    .name = "kurtosis",
    .summary = "Mean, variance, skewness and excess kurtosis",
    .schema = {{device_field(), dims_field()}},
    .make = [](const Value& args) { return std::make_unique<Kurtosis>(args); },
}};

}  // namespace
}  // namespace mase::kurtosis_statistic
