// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/learned.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/formats/kernels/learned.h"
#include "mase/formats/scaled.h"

namespace mase {
namespace {

struct LearnedRange {
  Scaled type;
  Granularity granularity;
  bool clip;        // the number is the end of the range, not the step
  ScaledSpec spec;  // the codes; the step is not used
  Rounder::Fit fit;

  Grouping groups(const Shape& shape) const { return grouping(shape, granularity); }

  // An optimiser may carry a small number through zero: its magnitude counts, and never vanishes.
  // The end of the range stays a number.
  double magnitude(float number) const {
    constexpr double smallest = 1e-30, largest = std::numeric_limits<float>::max();
    const double most = clip ? largest : largest / (spec.high + 1);
    return std::isfinite(number) ? std::clamp<double>(std::fabs(number), smallest, most) : 1.0;
  }
  float step(float number) const {
    const auto size = static_cast<float>(magnitude(number));
    return clip ? size / static_cast<float>(spec.high) : size;
  }

  // PACT: d value / d clip is 1 above it, -1 below the negative one. LSQ: rne(v) - v inside, the
  // code at the end of the range outside.
  LearnedSpec gradient_spec(float number) const {
    LearnedSpec result;
    const auto size = static_cast<float>(magnitude(number));
    const bool is_signed = spec.low < 0;
    if (clip) {
      result.low = is_signed ? -size : 0;
      result.high = size;
      result.at_low = is_signed ? -1.0f : 0;
      result.at_high = 1;
      result.rounding_error = false;
    } else {
      result.step = size;
      result.low = result.at_low = static_cast<float>(spec.low);
      result.high = result.at_high = static_cast<float>(spec.high);
    }
    return result;
  }
};

// The numbers lie along the dimensions that the groups do not run over.
Shape number_shape(const Shape& tensor, const Granularity& granularity) {
  using Kind = Granularity::Kind;
  if (granularity.kind == Kind::tensor || tensor.empty()) return {1};
  if (granularity.kind == Kind::row) {
    Shape shape = tensor;
    shape.back() = 1;
    return shape;
  }
  const int64_t groups = grouping(tensor, granularity).groups, axis = granularity.axis;
  const auto rank = static_cast<int64_t>(tensor.size());
  Shape shape(static_cast<size_t>(axis < 0 ? -axis : rank - axis), 1);
  shape[0] = groups;
  return shape;
}

}  // namespace

std::shared_ptr<const LearnedNumber> learned_range(const Scaled& type,
                                                   const Granularity& granularity,
                                                   Rounder::Fit start) {
  const auto range = std::make_shared<const LearnedRange>(
      LearnedRange{type, granularity, type.source == Scaled::Source::learned_clip, code_range(type),
                   std::move(start)});
  auto learned = std::make_shared<LearnedNumber>();
  learned->name = range->clip ? "clip" : "scale";
  learned->whole = granularity.kind == Granularity::Kind::tensor;
  learned->shape = [granularity](const Shape& tensor) { return number_shape(tensor, granularity); };
  learned->start = [range](const float* in, const Shape& shape, float* number) {
    range->groups(shape).for_each_group([&](int64_t, std::span<const Run> runs) {
      const double step = range->fit(in, runs)[0];
      *number++ = static_cast<float>(range->clip ? step * range->spec.high : step);
    });
  };
  learned->quantize = [range](const float* in, const float* number, float* out,
                              const Shape& shape) {
    range->groups(shape).for_each_run([&](int64_t g, int64_t at, size_t count) {
      LearnedSpec spec;
      spec.low = static_cast<float>(range->spec.low);
      spec.high = static_cast<float>(range->spec.high);
      spec.step = range->step(number[g]);
      learned_kernel(spec, in + at, out + at, count);
    });
  };
  learned->gradient = [range](const float* in, const float* number, const float* grad_out,
                              float* grad_in, double* grad_number, const Shape& shape) {
    range->groups(shape).for_each_run([&](int64_t g, int64_t at, size_t count) {
      const double sum = learned_gradient_kernel(range->gradient_spec(number[g]), in + at,
                                                 grad_out + at, grad_in + at, count);
      grad_number[g] += number[g] < 0 ? -sum : sum;
    });
  };
  learned->gradient_scale = [range](int64_t values) {
    if (range->clip) return 1.0;
    return 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, values)) * range->spec.high);
  };
  learned->type = [range](const float* number, const Shape& shape) {
    Scaled given = range->type;
    given.source = Scaled::Source::given;
    for (int64_t g = 0; g < range->groups(shape).groups; ++g)
      given.steps.push_back(range->step(number[g]));
    return NumberType{given, range->granularity};
  };
  return learned;
}

}  // namespace mase
