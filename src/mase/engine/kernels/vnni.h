// SPDX-License-Identifier: Apache-2.0
// The instruction behind integer_dot.cpp and integer_rows.cpp, which Highway's Debian version does
// not have: functions marked MASE_VNNI may use it where has_integer_dot() says so.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)  // of "undefined" vectors in GCC's own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define MASE_VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

namespace mase::kernels::vnni {

// Four products in each lane, added to the sum. GCC 12 copies the sum of its own intrinsic from
// register to register and to the stack.
MASE_VNNI inline __attribute__((always_inline)) void multiply_add(__m512i& sum,
                                                                  __m512i unsigned_bytes,
                                                                  __m512i signed_bytes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
}

// Values times `scale` plus `offset` as integers. Bits of `good` are cleared where one is no whole
// number, or not from 0 to 255: NaN and what is too large are not equal to what comes back.
MASE_VNNI inline __attribute__((always_inline)) __m512i bytes(__m512 values, __m512 scale,
                                                              __m512i offset, __mmask16& good) {
  const __m512 value = _mm512_mul_ps(values, scale);
  const __m512i code = _mm512_cvtps_epi32(value), byte = _mm512_add_epi32(code, offset);
  good &= _mm512_cmp_ps_mask(_mm512_cvtepi32_ps(code), value, _CMP_EQ_OQ) &
          _mm512_cmple_epu32_mask(byte, _mm512_set1_epi32(255));
  return byte;
}

}  // namespace mase::kernels::vnni

#endif
