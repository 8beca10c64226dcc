// SPDX-License-Identifier: Apache-2.0
// Loads of some lanes, from anywhere.
#if defined(MASE_ENGINE_MASKED_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MASE_ENGINE_MASKED_INL_H
#undef MASE_ENGINE_MASKED_INL_H
#else
#define MASE_ENGINE_MASKED_INL_H
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The lanes of the mask, zeros in the place of others, of which nothing is read. Without masked
// instructions Highway would load the whole vector, and would want it aligned.
template <class D>
HWY_INLINE hn::Vec<D> MaskedRead(hn::Mask<D> mask, D d, const float* from) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  alignas(16) float values[4], chosen[4];
  hn::Store(hn::VecFromMask(d, mask), d, chosen);
  uint32_t bits[4];
  __builtin_memcpy(bits, chosen, sizeof(bits));
  for (int i = 0; i < 4; ++i) values[i] = bits[i] ? from[i] : 0.0f;
  return hn::Load(d, values);
#else
  return hn::MaskedLoad(mask, d, from);
#endif
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
