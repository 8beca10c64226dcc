// SPDX-License-Identifier: Apache-2.0
// variance_online: MASE's running variance. Over "all" it merges the unbiased variance of each
// sample as if it were a population's, which lies a little above both; kept, because its users
// compare numbers. Otherwise it is Welford's population variance.
#include "mase/passes/statistics/moments.h"
#include "mase/passes/statistics/statistic.h"

namespace mase {
namespace {

class VarianceOnline : public GroupedStatistic {
 public:
  explicit VarianceOnline(const Value& args)
      : GroupedStatistic(args), all_(Dims::from(args["dims"]).mode == Dims::Mode::all) {}

  Value compute() const override {
    std::vector<double> means, variances;
    for (const MeanVariance& group : groups_) {
      means.push_back(group.mean);
      variances.push_back(group.population_variance());
    }
    return Dict{{"mean", grouping().shaped(means)},
                {"variance", count() < 2 ? Value("NA") : grouping().shaped(variances)},
                {"count", count()}};
  }

 private:
  void start(int64_t groups) override { groups_.assign(static_cast<size_t>(groups), {}); }
  void take(const float* sample) override {
    if (all_) {
      MeanVariance run;
      run.add_run(sample, grouping().per_sample());
      if (run.n > 1) run.m2 = run.sample_variance() * static_cast<double>(run.n);
      return groups_[0].merge(run);
    }
    grouping().each(sample, [&](int64_t group, float value) {
      groups_[static_cast<size_t>(group)].add(value);
    });
  }
  bool all_;
  std::vector<MeanVariance> groups_;
};

const Register<StatisticRecord> registered{{
    .name = "variance_online",
    .summary = "Mean and running variance",
    .help =
        "Over \"all\": MASE's formula, which merges each sample's unbiased variance. With a list\n"
        "of dimensions or \"NA\": the population variance.",
    .schema = {{device_field(), dims_field()}},
    .make = [](const Value& args) { return std::make_unique<VarianceOnline>(args); },
}};

}  // namespace
}  // namespace mase
