// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/scaled.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/scaled.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include "mase/formats/kernels/sweep-inl.h"

#ifndef MASE_FORMATS_SCALED_SPLIT
#define MASE_FORMATS_SCALED_SPLIT
namespace mase {

// step = coarse + fine, where coarse has so few bits that k * coarse is exact in single precision.
// The product is then rounded in its last 2^-32 and again in the sum, on every machine alike.
struct SplitStep {
  bool possible = false;  // the code has at most 16 bits, and nothing over- or underflows
  float coarse = 0, fine = 0;
  int code_bits = 0;
};

inline SplitStep split(const ScaledSpec& spec) {
  SplitStep result;
  const double most = std::max(spec.high - spec.zero, spec.zero - spec.low);
  if (!(most < 65536 && spec.step > 0x1p-80 && spec.step < 0x1p+80)) return result;
  result.possible = true;
  result.code_bits = std::bit_width(static_cast<uint32_t>(most));
  const uint32_t dropped = (1u << result.code_bits) - 1;
  result.coarse =
      std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(spec.step)) & ~dropped);
  result.fine = static_cast<float>(spec.step - result.coarse);
  return result;
}

}  // namespace mase
#endif

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {

// In double precision throughout.
void wide_codes(const ScaledSpec& spec, const float* in, float* out, size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const size_t lanes = hn::Lanes(d);
  const auto inverse = hn::Set(d, 1 / spec.step), step = hn::Set(d, spec.step);
  const auto low = hn::Set(d, spec.low - spec.zero), high = hn::Set(d, spec.high - spec.zero);
  const auto most = hn::Set(d, static_cast<double>(std::numeric_limits<float>::max()));
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::LoadU(df, in + i);
    auto k = hn::Round(hn::Mul(hn::PromoteTo(d, x), inverse));
    k = hn::Add(hn::Max(hn::Min(k, high), low), hn::Zero(d));  // a code 0 has no sign
    const auto value = hn::Max(hn::Min(hn::Mul(k, step), most), hn::Neg(most));
    hn::StoreU(hn::IfThenElse(hn::IsNaN(x), x, hn::DemoteTo(df, value)), df, out + i);
  }
  for (; i < count; ++i) out[i] = scaled_reference(spec, in[i]);
}

// Decides in single precision wherever that is certain; values within its error of a tie between
// two codes are left to the reference.
struct NarrowCodes {
  const ScaledSpec& spec;
  V inverse, low, high, coarse, fine, certain;

  NarrowCodes(const ScaledSpec& given, const SplitStep& step) : spec(given) {
    const F d;
    inverse = hn::Set(d, static_cast<float>(1 / spec.step));
    low = hn::Set(d, static_cast<float>(spec.low - spec.zero));
    high = hn::Set(d, static_cast<float>(spec.high - spec.zero));
    coarse = hn::Set(d, step.coarse);
    fine = hn::Set(d, step.fine);
    // x * inverse is off by less than 1.5 * 2^-23 of itself.
    certain = hn::Set(d, 0.5f - 0x1p-22f * static_cast<float>(1 << step.code_bits));
  }
  template <bool finite>
  HWY_INLINE V one(V x, V& uncertainty) const {
    V y = hn::Mul(x, inverse);
    // The scale covers all finite values.
    if constexpr (!finite) y = hn::Max(hn::Min(y, high), low);
    const V k = hn::Add(hn::Round(y), hn::Zero(F()));  // a code 0 has no sign
    uncertainty = hn::Max(uncertainty, hn::Abs(hn::Sub(y, k)));
    // k * coarse is exact: fused or not makes no difference.
    const V value = hn::MulAdd(k, coarse, hn::Mul(k, fine));
    if constexpr (finite) return value;
    return hn::IfThenElse(hn::IsNaN(x), x, value);
  }
  // Two vectors.
  template <bool finite>
  HWY_INLINE void two(const float* in, float* out, bool stream) const {
    const F d;
    const size_t lanes = hn::Lanes(d);
    V uncertainty = hn::Zero(d);
    const V a = one<finite>(hn::LoadU(d, in), uncertainty);
    const V b = one<finite>(hn::LoadU(d, in + lanes), uncertainty);
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Ge(uncertainty, certain)))) {
      for (size_t k = 0; k < 2 * lanes; ++k) out[k] = scaled_reference(spec, in[k]);
    } else if (stream) {
      hn::Stream(a, d, out);
      hn::Stream(b, d, out + lanes);
    } else {
      hn::StoreU(a, d, out);
      hn::StoreU(b, d, out + lanes);
    }
  }
  template <bool finite>
  HWY_INLINE void all(const float* in, float* out, size_t count, bool stream) const {
    const size_t step = 2 * hn::Lanes(F());
    size_t i = 0;
    for (; i + step <= count; i += step) two<finite>(in + i, out + i, stream);
    if (i == count) return;
    HWY_ALIGN float rest[2 * HWY_MAX_BYTES / sizeof(float)] = {};
    std::copy(in + i, in + count, rest);
    two<finite>(rest, rest, false);
    std::copy(rest, rest + (count - i), out + i);
  }
};

// `finite`: all values are known to be finite and within the range.
void scale(const ScaledSpec& spec, bool finite, const float* in, float* out, size_t count,
           bool stream) {
  const SplitStep step = split(spec);
  if (!step.possible)
    wide_codes(spec, in, out, count);
  else if (finite)
    NarrowCodes(spec, step).all<true>(in, out, count, stream);
  else
    NarrowCodes(spec, step).all<false>(in, out, count, stream);
}

void RoundScaled(const ScaledSpec& spec, const float* in, float* out, size_t count) {
  const bool stream = can_stream(in, out, count);
  scale(spec, false, in, out, count, stream);
  if (stream) hwy::FlushStream();
}

void Range(const float* in, size_t count, float& lowest, float& largest) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  V low = hn::Set(d, lowest), high = hn::Set(d, largest), low2 = low, high2 = high;
  const auto finite = [&](const float* at) HWY_ATTR {
    const V x = hn::LoadU(d, at);
    return hn::IfThenElseZero(hn::Lt(hn::Abs(x), hn::Inf(d)), x);
  };
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const V a = finite(in + i), b = finite(in + i + lanes);
    low = hn::Min(low, a);
    high = hn::Max(high, a);
    low2 = hn::Min(low2, b);
    high2 = hn::Max(high2, b);
  }
  lowest = std::min(lowest, hn::GetLane(hn::MinOfLanes(d, hn::Min(low, low2))));
  largest = std::max(largest, hn::GetLane(hn::MaxOfLanes(d, hn::Max(high, high2))));
  for (; i < count; ++i)
    if (std::isfinite(in[i])) {
      lowest = std::min(lowest, in[i]);
      largest = std::max(largest, in[i]);
    }
}

// The largest magnitude; infinite or NaN if any value is.
HWY_INLINE float largest_magnitude(const float* in, size_t count) {
  const I d;
  const size_t lanes = hn::Lanes(d);
  const VI mask = hn::Set(d, 0x7FFFFFFF);
  VI a = hn::Zero(d), b = a;
  const auto bits = [&](const float* at)
                        HWY_ATTR { return hn::And(hn::BitCast(d, hn::LoadU(F(), at)), mask); };
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    a = hn::Max(a, bits(in + i));
    b = hn::Max(b, bits(in + i + lanes));
  }
  int32_t largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
  for (; i < count; ++i) largest = std::max(largest, std::bit_cast<int32_t>(std::fabs(in[i])));
  return std::bit_cast<float>(largest);
}

void ScaledRows(const ScaledRowsRule& rule, const float* in, float* out, size_t rows,
                size_t count) {
  const bool stream = count % hn::Lanes(F()) == 0 && can_stream(in, out, rows * count);
  // Several rows at a time, so that the chain maximum, division, rounding of one row does not wait
  // for that of the row before.
  constexpr size_t most = 16;
  ScaledSpec specs[most];
  bool finite[most];
  for (size_t first = 0; first < rows; first += most) {
    const size_t n = std::min(most, rows - first);
    for (size_t k = 0; k < n; ++k) {
      const float* row = in + k * count;
      const float magnitude = rule.symmetric ? largest_magnitude(row, count) : 0;
      finite[k] = magnitude > 0 && magnitude < std::numeric_limits<float>::infinity();
      if (finite[k]) {
        specs[k] = rule.range;
        specs[k].step = magnitude / rule.range.high;
        continue;
      }
      float lowest = 0, largest = 0;
      Range(row, count, lowest, largest);
      specs[k] = rule.spec_of(lowest, largest);
    }
    for (size_t k = 0; k < n; ++k) {
      // The rows after these, while there is arithmetic to do.
      for (size_t i = 0; stream && i < count; i += 16) hwy::Prefetch(in + (n + k) * count + i);
      scale(specs[k], finite[k], in + k * count, out + k * count, count, stream);
    }
    in += n * count;
    out += n * count;
  }
  if (stream) hwy::FlushStream();
}

void ScaledValues(const ScaledSpec& spec, const float* codes, float* out, size_t count) {
  const SplitStep step = split(spec);
  if (!step.possible) {
    for (size_t i = 0; i < count; ++i) out[i] = scaled_value(spec, codes[i]);
    return;
  }
  const F d;
  const V zero = hn::Set(d, static_cast<float>(spec.zero));
  const V coarse = hn::Set(d, step.coarse), fine = hn::Set(d, step.fine);
  sweep(codes, out, count, [&](V code, size_t) HWY_ATTR {
    const V k = hn::Sub(code, zero);
    return hn::Add(hn::Mul(k, coarse), hn::Mul(k, fine));
  });
}

void ScaledCodes(const ScaledSpec& spec, uint32_t mask, const float* in, uint32_t* codes,
                 size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<int32_t, decltype(d)> di;
  const hn::Rebind<uint32_t, decltype(d)> du;
  const size_t lanes = hn::Lanes(d);
  const auto inverse = hn::Set(d, 1 / spec.step), zero = hn::Set(d, spec.zero);
  const auto low = hn::Set(d, spec.low), high = hn::Set(d, spec.high);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::PromoteTo(d, hn::LoadU(df, in + i));
    const auto near = hn::Add(hn::Round(hn::Mul(x, inverse)), zero);
    const auto inside = hn::Max(hn::Min(near, high), low);
    const auto code = hn::IfThenElse(hn::IsNaN(x), zero, inside);
    hn::StoreU(hn::And(hn::BitCast(du, hn::DemoteTo(di, code)), hn::Set(du, mask)), du, codes + i);
  }
  for (; i < count; ++i)
    codes[i] = static_cast<uint32_t>(static_cast<int32_t>(scaled_code(spec, in[i]))) & mask;
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(RoundScaled);
HWY_EXPORT(ScaledRows);
HWY_EXPORT(ScaledCodes);
HWY_EXPORT(ScaledValues);
HWY_EXPORT(Range);

double scaled_code(const ScaledSpec& spec, float x) {
  if (std::isnan(x)) return spec.zero;
  return std::clamp(std::nearbyint(static_cast<double>(x) * (1 / spec.step)) + spec.zero, spec.low,
                    spec.high);
}

float scaled_value(const ScaledSpec& spec, double code) {
  const SplitStep step = split(spec);
  if (!step.possible) {
    // A step rounded up may lead beyond single precision.
    const double most = std::numeric_limits<float>::max();
    return static_cast<float>(std::clamp((code - spec.zero) * spec.step, -most, most));
  }
  const auto k = static_cast<float>(code - spec.zero);
  return k * step.coarse + k * step.fine;
}

float scaled_reference(const ScaledSpec& spec, float x) {
  return std::isnan(x) ? x : scaled_value(spec, scaled_code(spec, x));
}

void scaled_kernel(const ScaledSpec& spec, const float* in, float* out, size_t count) {
  HWY_DYNAMIC_DISPATCH(RoundScaled)(spec, in, out, count);
}
void scaled_rows_kernel(const ScaledRowsRule& rule, const float* in, float* out, size_t rows,
                        size_t count) {
  HWY_DYNAMIC_DISPATCH(ScaledRows)(rule, in, out, rows, count);
}
void scaled_codes_kernel(const ScaledSpec& spec, uint32_t mask, const float* in, uint32_t* codes,
                         size_t count) {
  HWY_DYNAMIC_DISPATCH(ScaledCodes)(spec, mask, in, codes, count);
}
void scaled_values_kernel(const ScaledSpec& spec, const float* codes, float* out, size_t count) {
  HWY_DYNAMIC_DISPATCH(ScaledValues)(spec, codes, out, count);
}
void range_kernel(const float* in, size_t count, float& lowest, float& largest) {
  HWY_DYNAMIC_DISPATCH(Range)(in, count, lowest, largest);
}

}  // namespace mase
#endif
