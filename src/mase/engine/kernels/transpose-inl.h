// SPDX-License-Identifier: Apache-2.0
// Blocks of four samples by four features, transposed in registers.
#if defined(MASE_ENGINE_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MASE_ENGINE_TRANSPOSE_INL_H
#undef MASE_ENGINE_TRANSPOSE_INL_H
#else
#define MASE_ENGINE_TRANSPOSE_INL_H
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
using D = hn::CappedTag<float, 8>;  // whole blocks of four lanes: one or two
using V = hn::Vec<D>;
using D4 = hn::FixedTag<float, 4>;

// Four floats, from `offset` on, of row `i` and, with eight lanes, of row i + 4 behind them.
template <class Rows>
HWY_INLINE V LoadBlocks(const Rows& rows, int64_t i, int64_t offset) {
  const D d;
  const D4 d4;
#if HWY_MAX_BYTES >= 32
  return hn::Combine(d, hn::LoadU(d4, rows[i + 4] + offset), hn::LoadU(d4, rows[i] + offset));
#else
  (void)d;
  return hn::LoadU(d4, rows[i] + offset);
#endif
}

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
// Four floats of each of four rows, four apart. Highway's Combine clears the upper half first.
template <class Rows>
HWY_INLINE hn::Vec<hn::FixedTag<float, 16>> LoadFourBlocks(const Rows& rows, int64_t i,
                                                           int64_t offset) {
  const V low = LoadBlocks(rows, i, offset), high = LoadBlocks(rows, i + 8, offset);
  return {_mm512_insertf32x8(_mm512_castps256_ps512(low.raw), high.raw, 1)};
}
#endif

// A 4 x 4 transposition inside each block of four lanes.
template <class D_, class V_>
HWY_INLINE void TransposeBlocks(D_ d, V_& a, V_& b, V_& c, V_& e) {
  const hn::Repartition<double, D_> d64;
  const auto low_ab = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
  const auto high_ab = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
  const auto low_ce = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
  const auto high_ce = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  a = hn::BitCast(d, hn::InterleaveLower(d64, low_ab, low_ce));
  b = hn::BitCast(d, hn::InterleaveUpper(d64, low_ab, low_ce));
  c = hn::BitCast(d, hn::InterleaveLower(d64, high_ab, high_ce));
  e = hn::BitCast(d, hn::InterleaveUpper(d64, high_ab, high_ce));
}
#endif

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
