// SPDX-License-Identifier: Apache-2.0
// A vector holds as many counters as it has lanes; the 64-bit products of its even and its odd
// lanes are formed apart.
#include "mase/engine/kernels/dropout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/dropout.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/base/random.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace dropout {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR
using D = hn::ScalableTag<uint32_t>;
using V = hn::Vec<D>;

struct Halves {
  V low, high;
};

HWY_INLINE Halves Multiply(V a, V b) {
  const D d;
  const hn::Repartition<uint64_t, D> wide;
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))),
                               hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, b))));
  return {hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even)),
          hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)))};
}
#endif

}  // namespace dropout

void StreamWords(const WordStream& s, uint32_t first, int64_t count, uint32_t* words) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  using namespace dropout;
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V factor0 = hn::Set(d, 0xD2511F53u), factor1 = hn::Set(d, 0xCD9E8D57u);
  for (; i + lanes <= count; i += lanes) {
    V c0 = hn::Iota(d, first + static_cast<uint32_t>(i)), c1 = hn::Set(d, s.rest[0]),
      c2 = hn::Set(d, s.rest[1]), c3 = hn::Set(d, s.rest[2]);
    uint32_t key0 = s.key[0], key1 = s.key[1];
    for (int round = 0; round < 10; ++round) {
      const Halves a = Multiply(factor0, c0), b = Multiply(factor1, c2);
      c0 = hn::Xor(hn::Xor(b.high, c1), hn::Set(d, key0));
      c2 = hn::Xor(hn::Xor(a.high, c3), hn::Set(d, key1));
      c1 = b.low;
      c3 = a.low;
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, d, words + 4 * i);
  }
#endif
  reference::stream_words(s, first + static_cast<uint32_t>(i), count - i, words + 4 * i);
}

void Drop(const float* in, float* out, int64_t n, const uint32_t* words, uint32_t threshold,
          float scale, bool accumulate) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  using namespace dropout;
  const D d;
  const hn::ScalableTag<float> floats;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V limit = hn::Set(d, threshold);
  const auto factor = hn::Set(floats, scale);
  for (; i + lanes <= n; i += lanes) {
    const V word = hn::LoadU(d, words + i);  // there is no Ge of unsigned numbers
    const auto stays = hn::RebindMask(floats, hn::Eq(hn::Max(word, limit), word));
    auto value = hn::IfThenElseZero(stays, hn::Mul(hn::LoadU(floats, in + i), factor));
    if (accumulate) value = hn::Add(hn::LoadU(floats, out + i), value);
    hn::StoreU(value, floats, out + i);
  }
#endif
  reference::drop(in + i, out + i, n - i, words + i, threshold, scale, accumulate);
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(StreamWords);
HWY_EXPORT(Drop);

}  // namespace

namespace reference {

void stream_words(const WordStream& s, uint32_t first, int64_t count, uint32_t* words) {
  for (int64_t i = 0; i < count; ++i) {
    const auto block =
        philox({first + static_cast<uint32_t>(i), s.rest[0], s.rest[1], s.rest[2]}, s.key);
    for (int64_t j = 0; j < 4; ++j) words[4 * i + j] = block[static_cast<size_t>(j)];
  }
}

void drop(const float* in, float* out, int64_t n, const uint32_t* words, uint32_t threshold,
          float scale, bool accumulate) {
  for (int64_t i = 0; i < n; ++i) {
    const float value = words[i] >= threshold ? in[i] * scale : 0.0f;
    out[i] = accumulate ? out[i] + value : value;
  }
}

}  // namespace reference

void stream_words(const WordStream& stream, uint32_t first, int64_t count, uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(StreamWords)(stream, first, count, words);
}

void drop(const float* in, float* out, int64_t n, const uint32_t* words, uint32_t threshold,
          float scale, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(Drop)(in, out, n, words, threshold, scale, accumulate);
}

}  // namespace mase::kernels
#endif
