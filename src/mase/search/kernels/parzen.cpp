// SPDX-License-Identifier: Apache-2.0
#include "mase/search/kernels/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/search/kernels/parzen.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::search::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Each does whole vectors and says how many elements that were; the callers do the rest.
size_t AddNormals(double x, const double* HWY_RESTRICT mu, const double* HWY_RESTRICT inverse,
                  double* HWY_RESTRICT terms, size_t count) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  const auto at = hn::Set(d, x), half = hn::Set(d, 0.5);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto z = hn::Mul(hn::Sub(at, hn::LoadU(d, mu + i)), hn::LoadU(d, inverse + i));
    // Not a fused multiply-add: bits must not depend on the machine.
    hn::StoreU(hn::Sub(hn::LoadU(d, terms + i), hn::Mul(half, hn::Mul(z, z))), d, terms + i);
  }
  return i;
}

size_t AddMatches(const int32_t* HWY_RESTRICT choices, int32_t choice, double gain,
                  double* HWY_RESTRICT terms, size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<int32_t, decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  const auto wanted = hn::Set(d, static_cast<double>(choice)), plus = hn::Set(d, gain);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto given = hn::PromoteTo(d, hn::LoadU(di, choices + i));
    const auto added = hn::IfThenElseZero(hn::Eq(given, wanted), plus);
    hn::StoreU(hn::Add(hn::LoadU(d, terms + i), added), d, terms + i);
  }
  return i;
}

size_t Largest(const double* HWY_RESTRICT terms, size_t count, double* largest) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  auto most = hn::Set(d, -std::numeric_limits<double>::infinity());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) most = hn::Max(most, hn::LoadU(d, terms + i));
  *largest = hn::GetLane(hn::MaxOfLanes(d, most));
  return i;
}

}  // namespace mase::search::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::search::kernels {
namespace {

HWY_EXPORT(AddNormals);
HWY_EXPORT(AddMatches);
HWY_EXPORT(Largest);

__extension__ using Wide = unsigned __int128;

}  // namespace

void add_normals(double x, const double* mu, const double* inverse, double* terms, size_t count) {
  size_t i = HWY_DYNAMIC_DISPATCH(AddNormals)(x, mu, inverse, terms, count);
  for (; i < count; ++i) {
    const double z = (x - mu[i]) * inverse[i];
    terms[i] -= 0.5 * (z * z);
  }
}

void add_matches(const int32_t* choices, int32_t choice, double gain, double* terms, size_t count) {
  size_t i = HWY_DYNAMIC_DISPATCH(AddMatches)(choices, choice, gain, terms, count);
  for (; i < count; ++i)
    if (choices[i] == choice) terms[i] += gain;
}

double log_sum_exp(const double* terms, size_t count) {
  double largest;
  size_t i = HWY_DYNAMIC_DISPATCH(Largest)(terms, count, &largest);
  for (; i < count; ++i) largest = std::max(largest, terms[i]);
  if (std::isinf(largest)) return largest;
  // Added up as whole multiples of 2^-62, so that the order makes no difference.
  Wide sum = 0;
  const double least = largest - 45;
  for (size_t k = 0; k < count; ++k)
    if (terms[k] > least) sum += static_cast<uint64_t>(std::exp(terms[k] - largest) * 0x1p62);
  return largest + std::log(static_cast<double>(sum) * 0x1p-62);
}

}  // namespace mase::search::kernels
#endif
