// SPDX-License-Identifier: Apache-2.0
// record: the samples themselves, one after another. It keeps everything, so it is bounded.
#include "mase/base/fields.h"
#include "mase/passes/statistics/statistic.h"

namespace mase::record_statistic {
namespace {

constexpr size_t most_values = size_t{1} << 24;

class Recorder : public Statistic {
 public:
  explicit Recorder(const Value& args) : new_dim_(args["add_new_dim_before_concat"].as_bool()) {}

  void update(std::span<const float> data, const Shape& sample, int64_t samples) override {
    if (samples_ > 0 && sample != sample_)
      throw Error("record", fmt::format("a sample of shape {} after samples of shape {}",
                                        shape_text(sample), shape_text(sample_)));
    if (values_.size() + data.size() > most_values)
      throw Error("record", fmt::format("more than {} values", most_values),
                  "profile fewer samples, or use a statistic that needs no record");
    sample_ = sample;
    samples_ += samples;
    values_.insert(values_.end(), data.begin(), data.end());
  }

  Value compute() const override {
    Shape shape = sample_;
    if (new_dim_ || shape.empty())
      shape.insert(shape.begin(), samples_);
    else
      shape[0] *= samples_;
    size_t next = 0;
    return Dict{{"data", nested(shape, 0, next)},
                {"count", samples_},
                {"size_in_bytes", values_.size() * sizeof(float)}};
  }

 private:
  Value nested(const Shape& shape, size_t dim, size_t& next) const {
    if (dim == shape.size()) return static_cast<double>(values_[next++]);
    List list;
    for (int64_t i = 0; i < shape[dim]; ++i) list.push_back(nested(shape, dim + 1, next));
    return list;
  }

  bool new_dim_;
  Shape sample_;
  int64_t samples_ = 0;
  std::vector<float> values_;
};

const Register<StatisticRecord> registered{{
    .name = "record",
    .summary = "All samples, joined along their first dimension",
    .schema = {{device_field(), boolean_field("add_new_dim_before_concat",
                                              "join along a new first dimension instead", false)}},
    .make = [](const Value& args) { return std::make_unique<Recorder>(args); },
}};

}  // namespace
}  // namespace mase::record_statistic
