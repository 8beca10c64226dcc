// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/block.h"

#include <algorithm>
#include <bit>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/block.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using V = hn::Vec<F>;
using VI = hn::Vec<I>;

HWY_INLINE V finite_magnitude(V x) {
  const F d;
  const V a = hn::Abs(x);
  return hn::IfThenElseZero(hn::Lt(a, hn::Inf(d)), a);
}

template <Rounding rounding>
HWY_INLINE V to_whole(V x) {
  const F d;
  if constexpr (rounding == Rounding::half_away) {
    const V whole = hn::Trunc(x);
    const auto up = hn::Ge(hn::Abs(hn::Sub(x, whole)), hn::Set(d, 0.5f));
    return hn::Add(whole, hn::IfThenElseZero(up, hn::CopySign(hn::Set(d, 1.0f), x)));
  } else if constexpr (rounding == Rounding::toward_zero) {
    return hn::Trunc(x);
  } else {
    return hn::Round(x);
  }
}

// The rule's numbers as vectors, set once per call.
struct Constants {
  V largest, smallest, magic, steps, inverse_steps;
  VI carry, offset, least, most;

  explicit Constants(const BlockSpec& spec) {
    const F d;
    const I di;
    largest = hn::Set(d, spec.element.largest);
    smallest = hn::Set(d, spec.whole ? 1.0f : std::ldexp(1.0f, spec.element.emin));
    magic = hn::Set(d, std::ldexp(1.5f, 23 - spec.element.mantissa));
    steps = hn::Set(d, std::ldexp(1.0f, spec.element.mantissa));
    inverse_steps = hn::Set(d, std::ldexp(1.0f, -spec.element.mantissa));
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

template <bool whole, bool one_sided, Rounding rounding>
HWY_INLINE V element(const Constants& c, V x, V inverse, V scale) {
  const F d;
  const V y = hn::Mul(x, inverse);
  V r;
  if constexpr (whole) {
    r = hn::Max(hn::Min(to_whole<rounding>(y), c.largest), hn::Neg(c.largest));
  } else {
    const V a = hn::Min(hn::Abs(y), c.largest);
    const V exponent_bits = hn::BitCast(d, hn::Set(I(), 0x7F800000));
    const V p = hn::Max(hn::And(a, exponent_bits), c.smallest);
    if constexpr (rounding == Rounding::nearest_even) {
      const V shift = hn::Mul(p, c.magic);
      r = hn::Sub(hn::Add(a, shift), shift);
    } else {
      const V inverse_p = hn::BitCast(d, hn::Sub(hn::Set(I(), 254 << 23), hn::BitCast(I(), p)));
      r = to_whole<rounding>(hn::Mul(hn::Mul(a, inverse_p), c.steps));
      r = hn::Mul(r, hn::Mul(p, c.inverse_steps));
    }
    r = hn::CopySignToAbs(r, y);
    if constexpr (one_sided) {
      const V lost = hn::Neg(c.smallest);
      const V other = hn::IfThenElseZero(hn::Lt(y, lost), hn::Add(lost, lost));
      r = hn::IfThenElse(hn::Eq(r, lost), other, r);
    }
  }
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(r, scale));
}

inline void scalar_run(const BlockSpec& spec, int exponent, const float* in, float* out,
                       size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = block_element(spec, exponent, in[i]);
}

HWY_INLINE bool has_normal_scale(int exponent) { return exponent >= -126 && exponent <= 126; }

template <bool whole, bool one_sided, Rounding rounding>
void apply(const BlockSpec& spec, const Constants& c, int exponent, const float* in, float* out,
           size_t count) {
  if (!has_normal_scale(exponent)) return scalar_run(spec, exponent, in, out, count);
  const F d;
  const V scale = power(hn::Set(I(), exponent)), inverse = power(hn::Set(I(), -exponent));
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(element<whole, one_sided, rounding>(c, hn::LoadU(d, in + i), inverse, scale), d,
               out + i);
  if (i < count) {
    HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)] = {};
    std::copy(in + i, in + count, buffer);
    hn::Store(element<whole, one_sided, rounding>(c, hn::Load(d, buffer), inverse, scale), d,
              buffer);
    std::copy(buffer, buffer + (count - i), out + i);
  }
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

template <bool whole, bool one_sided, Rounding rounding>
void rows(const BlockSpec& spec, const float* in, float* out, size_t height, size_t count,
          size_t block) {
  const F d;
  const Constants c(spec);
  const size_t lanes = hn::Lanes(d);
  if (count % block == 0) {
    count *= height;
    height = 1;
  }
  constexpr size_t most_vectors = 8;
  if (block % lanes || block > most_vectors * lanes) {
    for (size_t row = 0; row < height; ++row)
      for (size_t i = 0; i < count; i += block) {
        const size_t n = std::min(block, count - i), at = row * count + i;
        const int e = block_exponent(spec, Largest(in + at, n));
        apply<whole, one_sided, rounding>(spec, c, e, in + at, out + at, n);
      }
    return;
  }
  const size_t vectors = block / lanes;
  for (size_t row = 0; row < height; ++row, in += count, out += count) {
    size_t i = 0;
    for (; i + block <= count; i += block) {
      V m = hn::Zero(d);
      for (size_t v = 0; v < vectors; ++v)
        m = hn::Max(m, finite_magnitude(hn::LoadU(d, in + i + v * lanes)));
      const VI e = shared_exponent(c, hn::MaxOfLanes(d, m));
      const int exponent = hn::GetLane(e);
      if (HWY_UNLIKELY(!has_normal_scale(exponent))) {
        scalar_run(spec, exponent, in + i, out + i, block);
        continue;
      }
      const V scale = power(e), inverse = power(hn::Neg(e));
      for (size_t v = 0; v < vectors; ++v) {
        const size_t at = i + v * lanes;
        hn::StoreU(element<whole, one_sided, rounding>(c, hn::LoadU(d, in + at), inverse, scale), d,
                   out + at);
      }
    }
    if (i < count) {
      const int e = block_exponent(spec, Largest(in + i, count - i));
      apply<whole, one_sided, rounding>(spec, c, e, in + i, out + i, count - i);
    }
  }
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
          out[at] = block_element(spec, exponents[k], in[at]);
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
      out[row * width + i] = block_element(spec, e, in[row * width + i]);
  }
}

// Calls `body.template operator()<whole, one_sided, rounding>()` for the spec.
template <class Body>
void with_rule(const BlockSpec& spec, const Body& body) {
  const Rounding rounding = spec.element.rounding;
  if (spec.whole) {
    if (rounding == Rounding::half_away)
      body.template operator()<true, false, Rounding::half_away>();
    else if (rounding == Rounding::toward_zero)
      body.template operator()<true, false, Rounding::toward_zero>();
    else
      body.template operator()<true, false, Rounding::nearest_even>();
  } else if (spec.element.one_sided_zero) {
    body.template operator()<false, true, Rounding::nearest_even>();
  } else {
    if (rounding == Rounding::half_away)
      body.template operator()<false, false, Rounding::half_away>();
    else if (rounding == Rounding::toward_zero)
      body.template operator()<false, false, Rounding::toward_zero>();
    else
      body.template operator()<false, false, Rounding::nearest_even>();
  }
}

void Rows(const BlockSpec& spec, const float* in, float* out, size_t height, size_t count,
          size_t block) {
  with_rule(spec, [&]<bool whole, bool one_sided, Rounding rounding>() {
    rows<whole, one_sided, rounding>(spec, in, out, height, count, block);
  });
}

void Columns(const BlockSpec& spec, const float* in, float* out, size_t height, size_t width) {
  with_rule(spec, [&]<bool whole, bool one_sided, Rounding rounding>() {
    columns<whole, one_sided, rounding>(spec, in, out, height, width);
  });
}

void Apply(const BlockSpec& spec, int exponent, const float* in, float* out, size_t count) {
  with_rule(spec, [&]<bool whole, bool one_sided, Rounding rounding>() {
    apply<whole, one_sided, rounding>(spec, Constants(spec), exponent, in, out, count);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(Rows);
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
  const double r = spec.whole ? std::clamp(round_to_whole(y, spec.element.rounding), -limit, limit)
                              : float_reference(spec.element, y);
  return static_cast<float>(std::ldexp(r, exponent));
}

void block_rows_kernel(const BlockSpec& spec, const float* in, float* out, size_t rows,
                       size_t count, size_t block) {
  HWY_DYNAMIC_DISPATCH(Rows)(spec, in, out, rows, count, block);
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
