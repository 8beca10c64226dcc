// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/block.h"

#include <algorithm>
#include <bit>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/block.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include "mase/formats/kernels/sweep-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {

HWY_INLINE V finite_magnitude(V x) {
  const V a = hn::Abs(x);
  return hn::IfThenElseZero(hn::Lt(a, hn::Inf(F())), a);
}

// The rule's numbers as vectors, set once per call.
struct Constants {
  FloatRounder rounder;
  VI carry, offset, least, most;

  explicit Constants(const BlockSpec& spec)
      : rounder(spec.element.mantissa, spec.whole ? 1.0f : std::ldexp(1.0f, spec.element.emin),
                spec.element.largest) {
    const I di;
    carry = hn::Set(di, spec.carry_bits < 0 ? 0 : 1 << (22 - spec.carry_bits));
    offset = hn::Set(di, 127 + spec.offset);
    least = hn::Set(di, spec.least);
    most = hn::Set(di, spec.most);
  }
};

HWY_INLINE VI shared_exponent(const Constants& c, V largest) {
  const VI field = hn::ShiftRight<23>(hn::Add(hn::BitCast(I(), largest), c.carry));
  return hn::Min(hn::Max(hn::Sub(field, c.offset), c.least), c.most);
}

// 2^e for exponents of normal numbers.
HWY_INLINE V power(VI e) {
  return hn::BitCast(F(), hn::ShiftLeft<23>(hn::Add(e, hn::Set(I(), 127))));
}
HWY_INLINE bool has_normal_power(int exponent) { return exponent >= -126 && exponent <= 126; }

// With scale 1 the element itself.
template <bool whole, bool one_sided, Rounding rounding>
HWY_INLINE V element(const Constants& c, V x, V inverse, V scale) {
  const V y = hn::Mul(x, inverse);
  V r;
  if constexpr (whole) {
    const V largest = c.rounder.largest;
    r = hn::Max(hn::Min(to_whole<rounding>(y), largest), hn::Neg(largest));
    r = hn::CopySign(r, y);  // some ways of rounding lose that of zero
  } else {
    r = hn::CopySignToAbs(c.rounder.round<rounding>(hn::Abs(y)), y);
    if constexpr (one_sided) r = c.rounder.without_least_negative(r, y);
  }
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(r, scale));
}

float Largest(const float* in, size_t count) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  V m = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) m = hn::Max(m, finite_magnitude(hn::LoadU(d, in + i)));
  float largest = hn::GetLane(hn::MaxOfLanes(d, m));
  for (; i < count; ++i)
    if (std::fabs(in[i]) <= 0x1.fffffep127f) largest = std::max(largest, std::fabs(in[i]));
  return largest;
}

// One block with a known exponent.
template <bool whole, bool one_sided, Rounding rounding>
void apply(const BlockSpec& spec, const Constants& c, int exponent, bool split, const float* in,
           float* out, size_t count) {
  if (!has_normal_power(exponent)) {
    for (size_t i = 0; i < count; ++i) {
      out[i] = block_element(spec, exponent, in[i]);
      if (!split) out[i] = block_value(out[i], exponent);
    }
    return;
  }
  const V inverse = power(hn::Set(I(), -exponent));
  const V scale = power(hn::Set(I(), split ? 0 : exponent));
  sweep(in, out, count, [&](V x, size_t) HWY_ATTR {
    return element<whole, one_sided, rounding>(c, x, inverse, scale);
  });
}

// `exponents` is null where values are wanted, not elements.
template <bool whole, bool one_sided, Rounding rounding>
void rows(const BlockSpec& spec, BlockRows rows, const float* in, float* out, int32_t* exponents) {
  const F d;
  const Constants c(spec);
  const size_t lanes = hn::Lanes(d), block = rows.block, vectors = block / lanes;
  const bool split = exponents != nullptr;
  constexpr size_t most_vectors = 8;  // of a block that is still in registers or at hand
  const bool by_vectors = block % lanes == 0 && vectors <= most_vectors;
  const bool stream =
      by_vectors && rows.count % lanes == 0 && can_stream(in, out, rows.rows * rows.count);
  if (rows.count % block == 0) {
    rows.count *= rows.rows;
    rows.rows = 1;
  }
  for (size_t row = 0; row < rows.rows; ++row, in += rows.count, out += rows.count) {
    size_t i = 0;
    for (; by_vectors && i + block <= rows.count; i += block) {
      V m = hn::Zero(d);
      for (size_t v = 0; v < vectors; ++v) {
        if (stream) hwy::Prefetch(in + i + v * lanes + fetch_ahead);
        m = hn::Max(m, finite_magnitude(hn::LoadU(d, in + i + v * lanes)));
      }
      const VI e = shared_exponent(c, hn::MaxOfLanes(d, m));
      const int exponent = hn::GetLane(e);
      if (split) *exponents++ = exponent;
      if (HWY_UNLIKELY(!has_normal_power(exponent))) {
        apply<whole, one_sided, rounding>(spec, c, exponent, split, in + i, out + i, block);
        continue;
      }
      const V inverse = power(hn::Neg(e)), scale = split ? hn::Set(d, 1.0f) : power(e);
      for (size_t v = 0; v < vectors; ++v) {
        const size_t at = i + v * lanes;
        const V r = element<whole, one_sided, rounding>(c, hn::LoadU(d, in + at), inverse, scale);
        if (stream)
          hn::Stream(r, d, out + at);
        else
          hn::StoreU(r, d, out + at);
      }
    }
    for (; i < rows.count; i += block) {
      const size_t n = std::min(block, rows.count - i);
      const int exponent = block_exponent(spec, Largest(in + i, n));
      if (split) *exponents++ = exponent;
      apply<whole, one_sided, rounding>(spec, c, exponent, split, in + i, out + i, n);
    }
  }
  if (stream) hwy::FlushStream();
}

template <bool whole, bool one_sided, Rounding rounding>
void columns(const BlockSpec& spec, const float* in, float* out, size_t height, size_t width) {
  const F d;
  const Constants c(spec);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    V m = hn::Zero(d);
    for (size_t row = 0; row < height; ++row)
      m = hn::Max(m, finite_magnitude(hn::LoadU(d, in + row * width + i)));
    const VI e = shared_exponent(c, m);
    const VI limit = hn::Set(I(), 127);
    if (HWY_UNLIKELY(!hn::AllTrue(I(), hn::Lt(hn::Abs(e), limit)))) {
      HWY_ALIGN int32_t exponents[HWY_MAX_BYTES / sizeof(int32_t)];
      hn::Store(e, I(), exponents);
      for (size_t row = 0; row < height; ++row)
        for (size_t k = 0; k < lanes; ++k) {
          const size_t at = row * width + i + k;
          out[at] = block_value(block_element(spec, exponents[k], in[at]), exponents[k]);
        }
      continue;
    }
    const V scale = power(e), inverse = power(hn::Neg(e));
    for (size_t row = 0; row < height; ++row) {
      const size_t at = row * width + i;
      hn::StoreU(element<whole, one_sided, rounding>(c, hn::LoadU(d, in + at), inverse, scale), d,
                 out + at);
    }
  }
  for (; i < width; ++i) {
    float largest = 0;
    for (size_t row = 0; row < height; ++row) {
      const float a = std::fabs(in[row * width + i]);
      if (a <= 0x1.fffffep127f) largest = std::max(largest, a);
    }
    const int e = block_exponent(spec, largest);
    for (size_t row = 0; row < height; ++row)
      out[row * width + i] = block_value(block_element(spec, e, in[row * width + i]), e);
  }
}

// Calls `body.template operator()<whole, one_sided, rounding>()` for the spec.
template <class Body>
void with_rule(const BlockSpec& spec, const Body& body) {
  const auto with_rounding = [&]<bool whole>() {
    if (spec.element.rounding == Rounding::half_away)
      body.template operator()<whole, false, Rounding::half_away>();
    else if (spec.element.rounding == Rounding::toward_zero)
      body.template operator()<whole, false, Rounding::toward_zero>();
    else
      body.template operator()<whole, false, Rounding::nearest_even>();
  };
  if (spec.whole)
    with_rounding.template operator()<true>();
  else if (spec.element.one_sided_zero)
    body.template operator()<false, true, Rounding::nearest_even>();
  else
    with_rounding.template operator()<false>();
}

void Rows(const BlockSpec& spec, const BlockRows& given, const float* in, float* out,
          int32_t* exponents) {
  with_rule(spec, [&]<bool whole, bool one_sided, Rounding rounding>() {
    rows<whole, one_sided, rounding>(spec, given, in, out, exponents);
  });
}

void Join(const BlockRows& given, const float* elements, const int32_t* exponents, float* out) {
  for (size_t row = 0; row < given.rows; ++row)
    for (size_t i = 0; i < given.count; i += given.block) {
      const size_t at = row * given.count + i, n = std::min(given.block, given.count - i);
      const int exponent = *exponents++;
      if (has_normal_power(exponent)) {
        const V scale = power(hn::Set(I(), exponent));
        // A product would quiet a NaN.
        sweep(elements + at, out + at, n, [&](V x, size_t) HWY_ATTR {
          return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(x, scale));
        });
      } else {
        for (size_t k = at; k < at + n; ++k) out[k] = block_value(elements[k], exponent);
      }
    }
}

void Columns(const BlockSpec& spec, const float* in, float* out, size_t height, size_t width) {
  with_rule(spec, [&]<bool whole, bool one_sided, Rounding rounding>() {
    columns<whole, one_sided, rounding>(spec, in, out, height, width);
  });
}

void Apply(const BlockSpec& spec, int exponent, const float* in, float* out, size_t count) {
  with_rule(spec, [&]<bool whole, bool one_sided, Rounding rounding>() {
    apply<whole, one_sided, rounding>(spec, Constants(spec), exponent, false, in, out, count);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(Rows);
HWY_EXPORT(Join);
HWY_EXPORT(Columns);
HWY_EXPORT(Apply);
HWY_EXPORT(Largest);

int block_exponent(const BlockSpec& spec, float largest) {
  const int carry = spec.carry_bits < 0 ? 0 : 1 << (22 - spec.carry_bits);
  const int exponent = ((std::bit_cast<int32_t>(largest) + carry) >> 23) - 127;
  return std::clamp(exponent - spec.offset, spec.least, spec.most);
}

float block_element(const BlockSpec& spec, int exponent, float x) {
  if (std::isnan(x)) return x;
  const double y = std::ldexp(static_cast<double>(x), -exponent);
  const double limit = spec.element.largest;
  return static_cast<float>(
      spec.whole ? std::clamp(round_to_whole(y, spec.element.rounding), -limit, limit)
                 : float_reference(spec.element, y));
}

float block_value(float element, int exponent) {
  if (std::isnan(element)) return element;
  return static_cast<float>(std::ldexp(static_cast<double>(element), exponent));
}

void block_rows_kernel(const BlockSpec& spec, const BlockRows& rows, const float* in, float* out) {
  HWY_DYNAMIC_DISPATCH(Rows)(spec, rows, in, out, nullptr);
}
void block_split_kernel(const BlockSpec& spec, const BlockRows& rows, const float* in,
                        float* elements, int32_t* exponents) {
  HWY_DYNAMIC_DISPATCH(Rows)(spec, rows, in, elements, exponents);
}
void block_join_kernel(const BlockRows& rows, const float* elements, const int32_t* exponents,
                       float* out) {
  HWY_DYNAMIC_DISPATCH(Join)(rows, elements, exponents, out);
}
void block_columns_kernel(const BlockSpec& spec, const float* in, float* out, size_t height,
                          size_t columns) {
  HWY_DYNAMIC_DISPATCH(Columns)(spec, in, out, height, columns);
}
float block_largest_kernel(const float* in, size_t count) {
  return HWY_DYNAMIC_DISPATCH(Largest)(in, count);
}
void block_apply_kernel(const BlockSpec& spec, int exponent, const float* in, float* out,
                        size_t count) {
  HWY_DYNAMIC_DISPATCH(Apply)(spec, exponent, in, out, count);
}

}  // namespace mase
#endif
