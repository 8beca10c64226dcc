// SPDX-License-Identifier: Apache-2.0
// Tiles of results, one vector of lanes each, stay in registers while their terms are summed up.
// Tiles at the edges compute their last row and column several times, alike.
#include "mase/engine/kernels/lane_products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/lane_products.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace lane_products {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int kTall = HWY_MAX_BYTES >= 64 ? 4 : 2, kWide = 4;

template <bool kScalar>
HWY_INLINE V Element(const float* at) {
  return kScalar ? hn::Set(D(), *at) : hn::LoadU(D(), at);
}

// Lanes [0, width) of all results.
template <bool kScalarA, bool kScalarB>
void Column(const LaneProduct& s, const float* a, const float* b, float* y, bool accumulate) {
  const D d;
  for (int64_t i = 0; i < s.rows; i += kTall)
    for (int64_t j = 0; j < s.columns; j += kWide) {
      const float *left[kTall], *right[kWide];
      float* to[kTall][kWide];
      V sum[kTall][kWide];
      for (int r = 0; r < kTall; ++r) left[r] = a + HWY_MIN(i + r, s.rows - 1) * s.a.row;
      for (int c = 0; c < kWide; ++c) right[c] = b + HWY_MIN(j + c, s.columns - 1) * s.b.column;
      for (int r = 0; r < kTall; ++r)
        for (int c = 0; c < kWide; ++c) {
          to[r][c] =
              y + HWY_MIN(i + r, s.rows - 1) * s.y.row + HWY_MIN(j + c, s.columns - 1) * s.y.column;
          sum[r][c] = accumulate ? hn::LoadU(d, to[r][c]) : hn::Zero(d);
        }
      for (int64_t t = 0; t < s.terms; ++t) {
        V value[kWide];
        for (int c = 0; c < kWide; ++c) value[c] = Element<kScalarB>(right[c] + t * s.b.row);
        for (int r = 0; r < kTall; ++r) {
          const V factor = Element<kScalarA>(left[r] + t * s.a.column);
          for (int c = 0; c < kWide; ++c) sum[r][c] = hn::MulAdd(factor, value[c], sum[r][c]);
        }
      }
      for (int r = 0; r < kTall; ++r)
        for (int c = 0; c < kWide; ++c) hn::StoreU(sum[r][c], d, to[r][c]);
    }
}

}  // namespace lane_products

void LaneProducts(const LaneProduct& s, const float* a, const float* b, float* y, bool accumulate) {
  using namespace lane_products;
  const auto width = static_cast<int64_t>(hn::Lanes(D()));
  const auto column = s.a.scalar   ? Column<true, false>
                      : s.b.scalar ? Column<false, true>
                                   : Column<false, false>;
  for (int64_t lane = 0; lane < s.lanes; lane += width)
    column(s, a + (s.a.scalar ? 0 : lane), b + (s.b.scalar ? 0 : lane), y + lane, accumulate);
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(LaneProducts);

}  // namespace

namespace reference {

void lane_product(const LaneProduct& s, const float* a, const float* b, float* y, bool accumulate) {
  for (int64_t i = 0; i < s.rows; ++i)
    for (int64_t j = 0; j < s.columns; ++j)
      for (int64_t lane = 0; lane < s.lanes; ++lane) {
        float& to = y[i * s.y.row + j * s.y.column + lane];
        float sum = accumulate ? to : 0.0f;
        for (int64_t t = 0; t < s.terms; ++t)
          sum += a[i * s.a.row + t * s.a.column + (s.a.scalar ? 0 : lane)] *
                 b[t * s.b.row + j * s.b.column + (s.b.scalar ? 0 : lane)];
        to = sum;
      }
}

}  // namespace reference

// Numbers without lanes have no padding: those of small constants, computed once.
void lane_product(const LaneProduct& s, const float* a, const float* b, float* y, bool accumulate) {
  if (s.padded && !(s.a.scalar && s.b.scalar))
    HWY_DYNAMIC_DISPATCH(LaneProducts)(s, a, b, y, accumulate);
  else
    reference::lane_product(s, a, b, y, accumulate);
}

}  // namespace mase::kernels
#endif
