// SPDX-License-Identifier: Apache-2.0
// variance_precise: mean and unbiased variance. MASE records everything first; a merged running
// variance in double precision gives the same numbers in constant memory.
// variance_online: mean and population variance, by Welford's running sums.
// variance_online_mase: what MASE calls variance_online. Over "all" it merges the unbiased variance
// of each sample as if it were a population's, which lies above both; for those who compare
// numbers.
#include "mase/passes/statistics/moments.h"
#include "mase/passes/statistics/statistic.h"

namespace mase::variance_statistic {
namespace {

class Variance : public GroupedStatistic {
 public:
  using GroupedStatistic::GroupedStatistic;

  Value compute() const override {
    std::vector<double> means, variances;
    for (const MeanVariance& group : groups_) {
      means.push_back(group.mean);
      variances.push_back(variance(group));
    }
    return Dict{{"mean", grouping().shaped(means)},
                {"variance", count() < 2 ? Value("NA") : grouping().shaped(variances)},
                {"count", count()}};
  }

 protected:
  void take_each(const float* sample) {
    grouping().each(sample, [&](int64_t group, float value) {
      groups_[static_cast<size_t>(group)].add(value);
    });
  }
  std::vector<MeanVariance> groups_;

 private:
  virtual double variance(const MeanVariance& group) const = 0;
  void start(int64_t groups) override { groups_.assign(static_cast<size_t>(groups), {}); }
};

class VariancePrecise : public Variance {
 public:
  using Variance::Variance;

 private:
  double variance(const MeanVariance& group) const override { return group.sample_variance(); }
  void take(const float* sample) override {
    if (grouping().single()) return groups_[0].add_run(sample, grouping().per_sample());
    take_each(sample);
  }
};

class VarianceOnline : public Variance {
 public:
  using Variance::Variance;

 private:
  double variance(const MeanVariance& group) const override { return group.population_variance(); }
  void take(const float* sample) override {
    if (grouping().single()) return groups_[0].add_run(sample, grouping().per_sample());
    take_each(sample);
  }
};

class VarianceOnlineMase : public Variance {
 public:
  explicit VarianceOnlineMase(const Value& args)
      : Variance(args), all_(Dims::from(args["dims"]).mode == Dims::Mode::all) {}

 private:
  double variance(const MeanVariance& group) const override { return group.population_variance(); }
  void take(const float* sample) override {
    if (!all_) return take_each(sample);
    MeanVariance run;
    run.add_run(sample, grouping().per_sample());
    if (run.n > 1) run.m2 = run.sample_variance() * static_cast<double>(run.n);
    groups_[0].merge(run);
  }
  bool all_;
};

const Register<StatisticRecord> precise{{
    .name = "variance_precise",
    .summary = "Mean and unbiased variance of all values",
    .schema = {{device_field(), dims_field()}},
    .make = [](const Value& args) { return std::make_unique<VariancePrecise>(args); },
}};

const Register<StatisticRecord> online{{
    .name = "variance_online",
    .summary = "Mean and population variance of all values",
    .schema = {{device_field(), dims_field()}},
    .make = [](const Value& args) { return std::make_unique<VarianceOnline>(args); },
}};

const Register<StatisticRecord> online_mase{{
    .name = "variance_online_mase",
    .summary = "What MASE calls variance_online",
    .help =
        "Over \"all\": merges each sample's unbiased variance as if it were a population's, which "
        "is\n"
        "no variance of the values. With a list of dimensions or \"NA\": the population variance.",
    .schema = {{device_field(), dims_field()}},
    .make = [](const Value& args) { return std::make_unique<VarianceOnlineMase>(args); },
}};

}  // namespace
}  // namespace mase::variance_statistic
