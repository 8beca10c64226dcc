// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/kernels/cached_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/cached_attention.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void CachedScores(const CachedAttention& s, int64_t head, const float* HWY_RESTRICT q,
                  const float* HWY_RESTRICT keys, int64_t begin, int64_t end,
                  float* HWY_RESTRICT scores) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* own = keys + head / (s.heads / s.key_heads) * s.width * s.positions;
  const auto scale = hn::Set(d, s.scale);
  int64_t j = begin;
  for (; j + lanes <= end; j += lanes) {  // two sums: an addition need not wait for the last
    auto even = hn::Zero(d), odd = hn::Zero(d);
    const float* at = own + j;
    int64_t e = 0;
    for (; e + 2 <= s.width; e += 2, at += 2 * s.positions) {
      even = hn::MulAdd(hn::Set(d, q[e]), hn::LoadU(d, at), even);
      odd = hn::MulAdd(hn::Set(d, q[e + 1]), hn::LoadU(d, at + s.positions), odd);
    }
    if (e < s.width) even = hn::MulAdd(hn::Set(d, q[e]), hn::LoadU(d, at), even);
    hn::StoreU(hn::Mul(hn::Add(even, odd), scale), d, scores + j - begin);
  }
  for (; j < end; ++j) {
    float even = 0, odd = 0;
    const float* at = own + j;
    for (int64_t e = 0; e < s.width; ++e, at += s.positions) (e % 2 ? odd : even) += q[e] * *at;
    scores[j - begin] = (even + odd) * s.scale;
  }
}

void ShareOut(float* scores, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float most = scores[0];
  for (int64_t j = 1; j < count; ++j) most = scores[j] > most || most != most ? scores[j] : most;
  const auto top = hn::Set(d, most);
  float sum = 0;
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes)
    hn::StoreU(ExpNotPositive(d, hn::Sub(hn::LoadU(d, scores + j), top)), d, scores + j);
  if (j < count) {
    HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)] = {};
    for (int64_t i = j; i < count; ++i) rest[i - j] = scores[i];
    hn::Store(ExpNotPositive(d, hn::Sub(hn::Load(d, rest), top)), d, rest);
    for (int64_t i = j; i < count; ++i) scores[i] = rest[i - j];
  }
  for (int64_t i = 0; i < count; ++i) sum += scores[i];
  for (int64_t i = 0; i < count; ++i) scores[i] /= sum;
}

void CachedMix(const CachedAttention& s, int64_t head, const float* HWY_RESTRICT shares,
               const float* HWY_RESTRICT values, int64_t begin, int64_t end,
               float* HWY_RESTRICT out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* own = values + (head / (s.heads / s.key_heads) * s.positions + begin) * s.result;
  const int64_t count = end - begin;
  int64_t f = 0;
  for (; f + 4 * lanes <= s.result; f += 4 * lanes) {
    auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
    const float* at = own + f;
    for (int64_t j = 0; j < count; ++j, at += s.result) {
      const auto share = hn::Set(d, shares[j]);
      a = hn::MulAdd(share, hn::LoadU(d, at), a);
      b = hn::MulAdd(share, hn::LoadU(d, at + lanes), b);
      c = hn::MulAdd(share, hn::LoadU(d, at + 2 * lanes), c);
      e = hn::MulAdd(share, hn::LoadU(d, at + 3 * lanes), e);
    }
    hn::StoreU(a, d, out + f);
    hn::StoreU(b, d, out + f + lanes);
    hn::StoreU(c, d, out + f + 2 * lanes);
    hn::StoreU(e, d, out + f + 3 * lanes);
  }
  for (; f + lanes <= s.result; f += lanes) {
    auto a = hn::Zero(d);
    for (int64_t j = 0; j < count; ++j)
      a = hn::MulAdd(hn::Set(d, shares[j]), hn::LoadU(d, own + j * s.result + f), a);
    hn::StoreU(a, d, out + f);
  }
  for (; f < s.result; ++f) {
    float sum = 0;
    for (int64_t j = 0; j < count; ++j) sum += shares[j] * own[j * s.result + f];
    out[f] = sum;
  }
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(CachedScores);
HWY_EXPORT(ShareOut);
HWY_EXPORT(CachedMix);

}  // namespace

void cached_scores(const CachedAttention& shape, int64_t head, const float* q, const float* keys,
                   int64_t begin, int64_t end, float* scores) {
  HWY_DYNAMIC_DISPATCH(CachedScores)(shape, head, q, keys, begin, end, scores);
}
void share_out(float* scores, int64_t count) { HWY_DYNAMIC_DISPATCH(ShareOut)(scores, count); }
void cached_mix(const CachedAttention& shape, int64_t head, const float* shares,
                const float* values, int64_t begin, int64_t end, float* out) {
  HWY_DYNAMIC_DISPATCH(CachedMix)(shape, head, shares, values, begin, end, out);
}

}  // namespace mase::kernels
#endif
