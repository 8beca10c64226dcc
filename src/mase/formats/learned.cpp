// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/learned.h"

#include <algorithm>
#include <limits>

#include "mase/formats/groups.h"
#include "mase/formats/kernels/learned.h"

namespace mase {
namespace {

// An optimiser may carry a small number through zero: its magnitude counts, and never vanishes. The
// end of the range stays a number.
constexpr double smallest = 1e-30, largest = std::numeric_limits<float>::max();
double magnitude(float number, const LearnedRange& range) {
  const double most = range.clip ? largest : largest / (range.spec.high + 1);
  return std::isfinite(number) ? std::clamp<double>(std::fabs(number), smallest, most) : 1.0;
}

// The numbers lie along the dimensions that the groups do not run over.
Shape number_shape(const Shape& tensor, const std::string& granularity, int64_t axis) {
  if (granularity == "tensor" || tensor.empty()) return {1};
  if (granularity == "row") {
    Shape shape = tensor;
    shape.back() = 1;
    return shape;
  }
  const int64_t groups = grouping(tensor, granularity, axis).groups;
  const auto rank = static_cast<int64_t>(tensor.size());
  Shape shape(static_cast<size_t>(axis < 0 ? -axis : rank - axis), 1);
  shape[0] = groups;
  return shape;
}

// PACT: d value / d clip is 1 above it, -1 below the negative one. LSQ: rne(v) - v inside, the code
// at the end of the range outside.
LearnedSpec gradient_spec(const LearnedRange& range, float number) {
  LearnedSpec spec;
  const auto size = static_cast<float>(magnitude(number, range));
  const bool is_signed = range.spec.low < 0;
  if (range.clip) {
    spec.low = is_signed ? -size : 0;
    spec.high = size;
    spec.at_low = is_signed ? -1.0f : 0;
    spec.at_high = 1;
    spec.rounding_error = false;
  } else {
    spec.step = size;
    spec.low = spec.at_low = static_cast<float>(range.spec.low);
    spec.high = spec.at_high = static_cast<float>(range.spec.high);
  }
  return spec;
}

}  // namespace

ScaledSpec learned_range_spec(int width, bool is_signed, bool clip) {
  ScaledSpec spec;
  spec.high = std::ldexp(1.0, is_signed ? width - 1 : width) - 1;
  if (is_signed) spec.low = clip ? -spec.high : -spec.high - 1;
  return spec;
}

std::shared_ptr<const LearnedNumber> learned_range(LearnedRange given) {
  const auto range = std::make_shared<const LearnedRange>(std::move(given));
  const auto groups_of = [range](const Shape& shape) {
    return grouping(shape, range->granularity, range->axis);
  };
  auto learned = std::make_shared<LearnedNumber>();
  learned->name = range->clip ? "clip" : "scale";
  learned->whole = range->granularity == "tensor";
  learned->shape = [range](const Shape& tensor) {
    return number_shape(tensor, range->granularity, range->axis);
  };
  learned->start = [range](const float* in, const Shape& shape, float* number) {
    for (const ScaledSpec& spec : range->starting_specs(in, shape))
      *number++ = static_cast<float>(range->clip ? spec.step * spec.high : spec.step);
  };
  learned->quantize = [range, groups_of](const float* in, const float* number, float* out,
                                         const Shape& shape) {
    groups_of(shape).for_each_run([&](int64_t g, int64_t at, size_t count) {
      LearnedSpec spec;
      spec.low = static_cast<float>(range->spec.low);
      spec.high = static_cast<float>(range->spec.high);
      spec.step = static_cast<float>(magnitude(number[g], *range)) / (range->clip ? spec.high : 1);
      learned_kernel(spec, in + at, out + at, count);
    });
  };
  learned->gradient = [range, groups_of](const float* in, const float* number,
                                         const float* grad_out, float* grad_in, double* grad_number,
                                         const Shape& shape) {
    groups_of(shape).for_each_run([&](int64_t g, int64_t at, size_t count) {
      const double sum = learned_gradient_kernel(gradient_spec(*range, number[g]), in + at,
                                                 grad_out + at, grad_in + at, count);
      grad_number[g] += number[g] < 0 ? -sum : sum;
    });
  };
  learned->gradient_scale = [range](int64_t values) {
    if (range->clip) return 1.0;
    return 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, values)) * range->spec.high);
  };
  return learned;
}

}  // namespace mase
