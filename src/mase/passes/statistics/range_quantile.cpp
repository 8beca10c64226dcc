// SPDX-License-Identifier: Apache-2.0
// range_quantile: the (1 - q) and q quantiles, exact up to a memory budget. Above it values are
// counted by their leading bits; the result then carries `relative_error`, which bounds it.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/passes/statistics/statistic.h"
#include "mase/passes/statistics/value_sketch.h"

namespace mase::range_quantile_statistic {
namespace {

class RangeQuantile : public GroupedStatistic {
 public:
  explicit RangeQuantile(const Value& args)
      : GroupedStatistic(args),
        absolute_(args["abs"].as_bool()),
        quantile_(args["quantile"].as_double()),
        budget_(static_cast<size_t>(args["memory_mb"].as_double() * 1e6) / sizeof(float)) {}

  Value compute() const override {
    std::vector<double> lows, highs, ranges;
    bool exact = true;
    for (const ValueSketch& group : groups_) {
      // torch's own rounding: both ends in single precision, then their difference
      const float low = static_cast<float>(group.quantile(1 - quantile_));
      const float high = static_cast<float>(group.quantile(quantile_));
      lows.push_back(low);
      highs.push_back(high);
      ranges.push_back(high - low);
      exact = exact && group.exact();
    }
    Dict result{{"min", grouping().shaped(lows)},
                {"max", grouping().shaped(highs)},
                {"range", grouping().shaped(ranges)},
                {"count", count()}};
    if (!exact) result.set("relative_error", ValueSketch::relative_error);
    return result;
  }

 private:
  void start(int64_t groups) override {
    const size_t count = static_cast<size_t>(groups);
    for (size_t i = 0; i < count; ++i)
      groups_.emplace_back(std::max<size_t>(1024, budget_ / count));
  }
  void take(const float* sample) override {
    grouping().each(sample, [&](int64_t group, float value) {
      groups_[static_cast<size_t>(group)].add(absolute_ ? std::abs(value) : value);
    });
  }
  bool absolute_;
  double quantile_;
  size_t budget_;  // values kept exactly, over all groups
  std::vector<ValueSketch> groups_;
};

const Register<StatisticRecord> registered{{
    .name = "range_quantile",
    .summary = "The values below which a share of 1 - q and of q lies",
    .help =
        "Exact (linear interpolation) up to memory_mb of values, then with a relative error of\n"
        "at most 2^-12 in constant memory.",
    .schema =
        {{device_field(), dims_field(), abs_field(),
          number_field("quantile", "the upper share; the lower one is 1 - q", 0.975).between(0, 1),
          number_field("memory_mb", "values kept exactly, in megabytes", 32).between(0.001, 4096)}},
    .make = [](const Value& args) { return std::make_unique<RangeQuantile>(args); },
}};

}  // namespace
}  // namespace mase::range_quantile_statistic
