// SPDX-License-Identifier: Apache-2.0
// range_n_sigma: mean minus and plus a number of standard deviations. `var_mode` is accepted; both
// modes give the unbiased deviation here (MASE's default mode fails).
#include "mase/base/fields.h"
#include "mase/passes/statistics/moments.h"
#include "mase/passes/statistics/statistic.h"

namespace mase::range_n_sigma_statistic {
namespace {

class RangeNSigma : public GroupedStatistic {
 public:
  explicit RangeNSigma(const Value& args)
      : GroupedStatistic(args),
        absolute_(args["abs"].as_bool()),
        sigmas_(args["num_sigma"].as_double()) {}

  Value compute() const override {
    if (count() < 2) return Dict{{"min", "NA"}, {"max", "NA"}, {"range", "NA"}, {"count", count()}};
    std::vector<double> lows, highs, ranges;
    for (const MeanVariance& group : groups_) {
      const double reach = sigmas_ * std::sqrt(group.sample_variance());
      lows.push_back(group.mean - reach);
      highs.push_back(group.mean + reach);
      ranges.push_back(2 * reach);
    }
    return Dict{{"min", grouping().shaped(lows)},
                {"max", grouping().shaped(highs)},
                {"range", grouping().shaped(ranges)},
                {"count", count()}};
  }

 private:
  void start(int64_t groups) override { groups_.assign(static_cast<size_t>(groups), {}); }
  void take(const float* sample) override {
    if (grouping().single()) return groups_[0].add_run(sample, grouping().per_sample(), absolute_);
    grouping().each(sample, [&](int64_t group, float value) {
      groups_[static_cast<size_t>(group)].add(absolute_ ? std::abs(value) : value);
    });
  }
  bool absolute_;
  double sigmas_;
  std::vector<MeanVariance> groups_;
};

const Register<StatisticRecord> registered{{
    .name = "range_n_sigma",
    .summary = "Mean plus and minus a number of standard deviations",
    .schema = {{device_field(), dims_field(), abs_field(),
                text_field("var_mode", "accepted for MASE's sake; both give the unbiased deviation",
                           "online", {"online", "precise"}),
                number_field("num_sigma", "how many standard deviations", 3).from(0)}},
    .make = [](const Value& args) { return std::make_unique<RangeNSigma>(args); },
}};

}  // namespace
}  // namespace mase::range_n_sigma_statistic
