// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/statistics/statistic.h"
#include "mase/base/fields.h"

#include <algorithm>

namespace mase {
namespace {

std::optional<std::string> check_dims(const Value& value) {
  const std::string wanted = "expected \"all\", \"NA\" or a list of dimensions";
  if (value.is_string()) return {};
  if (!value.is_list()) return wanted;
  std::vector<int64_t> seen;
  for (const Value& item : value.as_list()) {
    if (!item.is_int()) return wanted;
    if (std::count(seen.begin(), seen.end(), item.as_int()))
      return fmt::format("dimension {} is listed twice", item.as_int());
    seen.push_back(item.as_int());
  }
  return {};
}

Value nested(const std::vector<double>& values, const Shape& shape, size_t dim, size_t& next) {
  if (dim == shape.size()) return single(values[next++]);
  List list;
  for (int64_t i = 0; i < shape[dim]; ++i) list.push_back(nested(values, shape, dim + 1, next));
  return list;
}

}  // namespace

Field dims_field() {
  FieldOf field = any_field(
      "dims", "\"all\", a list of dimensions to reduce, or \"NA\": one result per element", "all");
  field.choices = {"all", "NA", "None", "none"};  // listed, so that "NA" is not "not given"
  return std::move(field).checked(check_dims);
}

Field device_field() { return text_field("device", "accepted for MASE's sake; no effect"); }

Field abs_field() { return boolean_field("abs", "take absolute values first", false); }

Dims Dims::from(const Value& value) {
  Dims dims;
  if (value.is_list()) {
    dims.mode = Mode::list;
    dims.list = value.as_int_list("dims");
  } else if (value.is_string() && value.as_string() == "all") {
    dims.mode = Mode::all;
  } else {
    dims.mode = Mode::none;
  }
  return dims;
}

SampleGroups::SampleGroups(const Dims& dims, const Shape& sample) : sample_(sample) {
  const int64_t count = element_count(sample);
  if (dims.mode == Dims::Mode::all) {
    per_sample_ = count;
    return;
  }
  std::vector<bool> reduced(sample.size(), false);
  if (dims.mode == Dims::Mode::list) {
    for (const int64_t dim : dims.list) {
      const int64_t rank = static_cast<int64_t>(sample.size());
      if (dim < -rank || dim >= rank)
        throw Error("dims", fmt::format("a sample of shape {} has no dimension {}",
                                        shape_text(sample), dim));
      reduced[static_cast<size_t>(dim < 0 ? dim + rank : dim)] = true;
    }
  }
  for (size_t d = 0; d < sample.size(); ++d) {
    if (reduced[d])
      per_sample_ *= sample[d];
    else
      kept_.push_back(sample[d]);
  }
  single_ = groups() == 1;
  if (single_) return;
  index_.resize(static_cast<size_t>(count));
  std::vector<int64_t> place(sample.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t group = 0;
    for (size_t d = 0; d < sample.size(); ++d)
      if (!reduced[d]) group = group * sample[d] + place[d];
    index_[static_cast<size_t>(i)] = group;
    for (size_t d = sample.size(); d-- > 0 && ++place[d] == sample[d];) place[d] = 0;
  }
}

Value SampleGroups::shaped(const std::vector<double>& per_group) const {
  size_t next = 0;
  return per_group.empty() ? Value() : nested(per_group, kept_, 0, next);
}

void GroupedStatistic::update(std::span<const float> data, const Shape& sample, int64_t samples) {
  if (!started_) {
    grouping_ = SampleGroups(dims_, sample);
    start(grouping_.groups());
    started_ = true;
  }
  if (sample != grouping_.sample())
    throw Error("statistics", fmt::format("a sample of shape {} after samples of shape {}",
                                          shape_text(sample), shape_text(grouping_.sample())));
  const int64_t size = element_count(sample);
  MASE_CHECK(static_cast<int64_t>(data.size()) == size * samples, "{} values for {} samples",
             data.size(), samples);
  for (int64_t i = 0; i < samples; ++i) {
    ++samples_;
    take(data.data() + i * size);
  }
}

Value single(double number) { return static_cast<double>(static_cast<float>(number)); }

}  // namespace mase
