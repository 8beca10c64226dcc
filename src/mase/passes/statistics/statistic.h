// SPDX-License-Identifier: Apache-2.0
// What a statistic collector is: fed samples one after another, it ends in a small table. One
// record per file; profile_statistics finds them by name.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/base/tensor.h"

namespace mase {

// Which values are put together, MASE's `dims`: "all" (one result), nothing (one result per
// element of a sample, over the samples), or the dimensions of a sample that are reduced.
struct Dims {
  enum class Mode { all, none, list } mode = Mode::all;
  std::vector<int64_t> list = {};

  static Dims from(const Value& value);  // of a validated `dims` field
};
Field dims_field();
Field device_field();  // MASE's; accepted and without effect
Field abs_field();

// The groups a sample's elements fall into, for one sample shape.
class SampleGroups {
 public:
  SampleGroups() = default;
  SampleGroups(const Dims& dims, const Shape& sample);

  int64_t groups() const { return element_count(kept_); }
  int64_t per_sample() const { return per_sample_; }  // elements of each group in one sample
  const Shape& sample() const { return sample_; }
  bool single() const { return single_; }
  // Calls visit(group, value) for every element of one sample, in memory order.
  template <class Visit>
  void each(const float* data, const Visit& visit) const {
    const int64_t count = element_count(sample_);
    if (single_)
      for (int64_t i = 0; i < count; ++i) visit(int64_t{0}, data[i]);
    else
      for (int64_t i = 0; i < count; ++i) visit(index_[static_cast<size_t>(i)], data[i]);
  }
  // One value per group in the shape that is left: a number, or nested lists.
  Value shaped(const std::vector<double>& per_group) const;

 private:
  Shape sample_, kept_;
  std::vector<int64_t> index_;  // group of each element; empty when there is one group
  int64_t per_sample_ = 1;
  bool single_ = true;
};

class Statistic {
 public:
  virtual ~Statistic() = default;
  // `data` holds `samples` samples of this shape, one after another. Every sample of a collector
  // has the same shape; another one is an error.
  virtual void update(std::span<const float> data, const Shape& sample, int64_t samples) = 0;
  virtual Value compute() const = 0;
};

// A statistic that treats each group on its own: checks shapes and keeps the grouping.
class GroupedStatistic : public Statistic {
 public:
  explicit GroupedStatistic(const Value& args) : dims_(Dims::from(args["dims"])) {}
  void update(std::span<const float> data, const Shape& sample, int64_t samples) final;

 protected:
  virtual void start(int64_t groups) = 0;
  virtual void take(const float* sample) = 0;
  const SampleGroups& grouping() const { return grouping_; }
  int64_t count() const { return samples_ * grouping_.per_sample(); }  // values per group
  int64_t samples() const { return samples_; }

 private:
  Dims dims_;
  SampleGroups grouping_;
  bool started_ = false;
  int64_t samples_ = 0;
};

struct StatisticRecord {
  static constexpr const char* kind = "statistic";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string help = {};
  Schema schema = {};
  std::function<std::unique_ptr<Statistic>(const Value& args)> make;  // args are validated
};

// A number as results show it: rounded to single precision, as the tensors are.
Value single(double number);

}  // namespace mase
