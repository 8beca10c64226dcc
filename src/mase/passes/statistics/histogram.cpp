// SPDX-License-Identifier: Apache-2.0
// histogram: counts in equal bins between the least and the largest value, or given limits.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/passes/statistics/statistic.h"
#include "mase/passes/statistics/value_sketch.h"

namespace mase::histogram_statistic {
namespace {

constexpr size_t exact_values = size_t{1} << 22;

class Histogram : public GroupedStatistic {
 public:
  explicit Histogram(const Value& args)
      : GroupedStatistic(args),
        absolute_(args["abs"].as_bool()),
        bins_(static_cast<int>(args["bins"].as_int())),
        low_(args["min"]),
        high_(args["max"]) {}

  Value compute() const override {
    List histograms;
    for (const ValueSketch& group : groups_) histograms.push_back(histogram_of(group));
    if (histograms.size() == 1) {
      Value only = histograms.front();
      only.dict().set("count", count());
      return only;
    }
    return Dict{{"groups", histograms}, {"count", count()}};
  }

 private:
  Value histogram_of(const ValueSketch& values) const {
    const double low = low_.is_null() ? values.lowest() : low_.as_double();
    const double high = high_.is_null() ? values.largest() : high_.as_double();
    List edges, counts;
    for (int i = 0; i <= bins_; ++i) edges.push_back(single(low + (high - low) * i / bins_));
    int64_t inside = 0;
    for (const int64_t count : values.histogram(low, high, bins_)) {
      counts.push_back(count);
      inside += count;
    }
    return Dict{
        {"edges", edges}, {"counts", counts}, {"outside", values.count() - inside + values.nans()}};
  }

  void start(int64_t groups) override {
    for (int64_t i = 0; i < groups; ++i)
      groups_.emplace_back(std::max<size_t>(1024, exact_values / static_cast<size_t>(groups)));
  }
  void take(const float* sample) override {
    grouping().each(sample, [&](int64_t group, float value) {
      groups_[static_cast<size_t>(group)].add(absolute_ ? std::abs(value) : value);
    });
  }
  bool absolute_;
  int bins_;
  Value low_, high_;
  std::vector<ValueSketch> groups_;
};

const Register<StatisticRecord> registered{{
    .name = "histogram",
    .summary = "Counts of values in equal bins",
    .help =
        "Above four million values a value may fall into the neighbouring bin if it lies within\n"
        "a share of 2^-12 of the edge.",
    .schema = {{device_field(), dims_field(), abs_field(),
                integer_field("bins", "how many bins", 64).between(1, 65536),
                number_field("min", "lower limit; the least value if not given"),
                number_field("max", "upper limit; the largest value if not given")}},
    .make = [](const Value& args) { return std::make_unique<Histogram>(args); },
}};

}  // namespace
}  // namespace mase::histogram_statistic
