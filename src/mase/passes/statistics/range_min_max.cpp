// SPDX-License-Identifier: Apache-2.0
// range_min_max: least and largest value. A NaN anywhere shows, as in PyTorch.
#include <cmath>

#include "mase/passes/statistics/statistic.h"

namespace mase::range_min_max_statistic {
namespace {

class RangeMinMax : public GroupedStatistic {
 public:
  explicit RangeMinMax(const Value& args)
      : GroupedStatistic(args), absolute_(args["abs"].as_bool()) {}

  Value compute() const override {
    std::vector<double> lows, highs, ranges;
    for (const Range& range : ranges_) {
      lows.push_back(range.low);
      highs.push_back(range.high);
      ranges.push_back(range.high - range.low);
    }
    return Dict{{"min", grouping().shaped(lows)},
                {"max", grouping().shaped(highs)},
                {"range", grouping().shaped(ranges)},
                {"count", count()}};
  }

 private:
  struct Range {
    float low = INFINITY, high = -INFINITY;
  };

  void start(int64_t groups) override { ranges_.assign(static_cast<size_t>(groups), {}); }
  void take(const float* sample) override {
    grouping().each(sample, [&](int64_t group, float value) {
      if (absolute_) value = std::abs(value);
      Range& range = ranges_[static_cast<size_t>(group)];
      if (!(value >= range.low)) range.low = std::isnan(range.low) ? range.low : value;
      if (!(value <= range.high)) range.high = std::isnan(range.high) ? range.high : value;
    });
  }
  bool absolute_;
  std::vector<Range> ranges_;
};

const Register<StatisticRecord> registered{{
    .name = "range_min_max",
    .summary = "Least and largest value",
    .schema = {{device_field(), dims_field(), abs_field()}},
    .make = [](const Value& args) { return std::make_unique<RangeMinMax>(args); },
}};

}  // namespace
}  // namespace mase::range_min_max_statistic
