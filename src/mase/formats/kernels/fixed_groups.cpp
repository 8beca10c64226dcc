// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/fixed_groups.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/fixed_groups.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include "mase/formats/kernels/fixed-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {

// Value i belongs to group i.
template <Rounding rounding, bool wraps>
void one_each(const FixedGroups& groups, const float* in, float* out) {
  const F d;
  sweep(in, out, static_cast<size_t>(groups.count()), [&](V x, size_t i) HWY_ATTR {
    return to_fixed<rounding, wraps>(
        x, hn::LoadU(d, groups.scale() + i), hn::LoadU(d, groups.inverse() + i),
        hn::LoadU(d, groups.low() + i), hn::LoadU(d, groups.high() + i),
        wraps ? hn::LoadU(d, groups.wrap() + i) : hn::Zero(d));
  });
}

void OneEach(const FixedGroups& groups, const float* in, float* out) {
  with_rounding(groups.at(0).rounding, [&]<Rounding rounding>() {
    if (groups.at(0).wrap > 0)
      one_each<rounding, true>(groups, in, out);
    else
      one_each<rounding, false>(groups, in, out);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(OneEach);

void FixedGroups::add(const IntegerSpec& spec) {
  specs_.push_back(spec);
  const float numbers[] = {spec.scale, spec.inverse, spec.low, spec.high, spec.wrap};
  for (size_t i = 0; i < std::size(numbers); ++i) columns_[i].push_back(numbers[i]);
}

void FixedGroups::finish() {
  // The last vector reads beyond the end: ones, so that nothing is divided by zero. HWY_MAX_BYTES
  // is no measure here: this code is compiled for the smallest instruction set only.
  constexpr size_t widest = 64 / sizeof(float);
  for (std::vector<float>& column : columns_) column.resize(column.size() + widest, 1.0f);
}

void fixed_groups_kernel(const FixedGroups& groups, const Grouping& grouping, const float* in,
                         float* out) {
  if (grouping.inner == 1) {
    for (int64_t o = 0; o < grouping.outer && grouping.groups > 0; ++o)
      HWY_DYNAMIC_DISPATCH(OneEach)
    (groups, in + o * grouping.groups, out + o * grouping.groups);
    return;
  }
  grouping.for_each_run([&](int64_t g, int64_t at, size_t count) {
    integer_kernel(groups.at(g), in + at, out + at, count, 0);
  });
}

}  // namespace mase
#endif
