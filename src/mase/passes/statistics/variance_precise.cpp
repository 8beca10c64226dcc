// SPDX-License-Identifier: Apache-2.0
// variance_precise: mean and unbiased variance. MASE records everything first; a merged running
// variance in double precision gives the same numbers in constant memory.
#include "mase/passes/statistics/moments.h"
#include "mase/passes/statistics/statistic.h"

namespace mase {
namespace {

class VariancePrecise : public GroupedStatistic {
 public:
  using GroupedStatistic::GroupedStatistic;

  Value compute() const override {
    std::vector<double> means, variances;
    for (const MeanVariance& group : groups_) {
      means.push_back(group.mean);
      variances.push_back(group.sample_variance());
    }
    return Dict{{"mean", grouping().shaped(means)},
                {"variance", count() < 2 ? Value("NA") : grouping().shaped(variances)},
                {"count", count()}};
  }

 private:
  void start(int64_t groups) override { groups_.assign(static_cast<size_t>(groups), {}); }
  void take(const float* sample) override {
    if (grouping().single()) return groups_[0].add_run(sample, grouping().per_sample());
    grouping().each(sample, [&](int64_t group, float value) {
      groups_[static_cast<size_t>(group)].add(value);
    });
  }
  std::vector<MeanVariance> groups_;
};

const Register<StatisticRecord> registered{{
    .name = "variance_precise",
    .summary = "Mean and unbiased variance of all values",
    .schema = {{device_field(), dims_field()}},
    .make = [](const Value& args) { return std::make_unique<VariancePrecise>(args); },
}};

}  // namespace
}  // namespace mase
