// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/kernels/winograd_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/winograd_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace winograd_rows {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

HWY_INLINE V Times(float factor, V v, V sum) { return hn::MulAdd(hn::Set(D(), factor), v, sum); }

// Sum and difference of the even and the odd values' shares.
HWY_INLINE void Both(V even, V odd, V* to) {
  to[0] = hn::Add(even, odd);
  to[1] = hn::Sub(even, odd);
}

HWY_INLINE void Image(const V* d, V* v) {
  v[0] = Times(5.25f, hn::Sub(d[4], d[2]), hn::Sub(d[0], d[6]));
  Both(Times(-4.25f, d[4], hn::Add(d[2], d[6])), Times(-4.25f, d[3], hn::Add(d[1], d[5])), v + 1);
  Both(Times(0.25f, d[2], Times(-1.25f, d[4], d[6])),
       Times(0.5f, d[1], Times(-2.5f, d[3], hn::Add(d[5], d[5]))), v + 3);
  Both(Times(4.0f, d[2], Times(-5.0f, d[4], d[6])),
       Times(2.0f, d[1], Times(-2.5f, d[3], hn::Mul(hn::Set(D(), 0.5f), d[5]))), v + 5);
  v[7] = Times(5.25f, hn::Sub(d[3], d[5]), hn::Sub(d[7], d[1]));
}

HWY_INLINE void Result(const V* s, V* y) {
  const V one = hn::Add(s[1], s[2]), two = hn::Add(s[3], s[4]), half = hn::Add(s[5], s[6]);
  const V odd_one = hn::Sub(s[1], s[2]), odd_two = hn::Sub(s[3], s[4]),
          odd_half = hn::Sub(s[5], s[6]);
  y[0] = hn::Add(hn::Add(s[0], one), hn::Add(two, half));
  y[1] = Times(2.0f, odd_two, Times(0.5f, odd_half, odd_one));
  y[2] = Times(4.0f, two, Times(0.25f, half, one));
  y[3] = Times(8.0f, odd_two, Times(0.125f, odd_half, hn::Add(odd_one, s[7])));
}

// body(first sample, mask) for vectors of samples; kMasked only where they are not full.
template <class Whole, class Part>
HWY_INLINE void EachVector(int64_t n, const Whole& whole, const Part& part) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t b = 0;
  for (; b + lanes <= n; b += lanes) whole(b);
  if (b < n) part(b, hn::FirstN(D(), static_cast<size_t>(n - b)));
}

}  // namespace winograd_rows

void WinogradRowsImage(const RowTiles& s, const float* HWY_RESTRICT x, float* HWY_RESTRICT places) {
  using namespace winograd_rows;
  const D d;
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t tile = 0; tile < s.tiles; ++tile) {
      const float* from = x + row * s.pitch + row_results * tile * s.n;
      float* to = places + (row * s.tiles + tile) * s.n;
      const int64_t left = s.columns - row_results * tile;
      EachVector(
          s.n,
          [&](int64_t b) HWY_ATTR {
            V value[row_places], result[row_places];
            for (int i = 0; i < row_places; ++i)
              value[i] = i < left ? hn::LoadU(d, from + i * s.n + b) : hn::Zero(d);
            Image(value, result);
            for (int i = 0; i < row_places; ++i) hn::StoreU(result[i], d, to + i * s.step + b);
          },
          [&](int64_t b, M mask) HWY_ATTR {
            V value[row_places], result[row_places];
            for (int i = 0; i < row_places; ++i)
              value[i] = i < left ? MaskedRead(mask, d, from + i * s.n + b) : hn::Zero(d);
            Image(value, result);
            for (int i = 0; i < row_places; ++i)
              hn::BlendedStore(result[i], mask, d, to + i * s.step + b);
          });
    }
}

void WinogradRowsResult(const float* HWY_RESTRICT sums, int64_t step, int64_t columns, int64_t n,
                        float bias, float* y, const Finish& finish) {
  using namespace winograd_rows;
  const D d;
  const V start = hn::Set(d, bias), low = hn::Set(d, finish.low), high = hn::Set(d, finish.high);
  for (int64_t first = 0; first < columns; first += row_results) {
    const float* from = sums + first / row_results * n;
    const int64_t left = columns - first < row_results ? columns - first : row_results;
    EachVector(
        n,
        [&](int64_t b) HWY_ATTR {
          V value[row_places], result[row_results];
          for (int i = 0; i < row_places; ++i) value[i] = hn::LoadU(d, from + i * step + b);
          Result(value, result);
          for (int64_t j = 0; j < left; ++j) {
            const int64_t at = (first + j) * n + b;
            V last = hn::Add(result[j], start);
            if (finish.add) last = hn::Add(last, hn::LoadU(d, finish.add + at));
            hn::StoreU(hn::Min(high, hn::Max(low, last)), d, y + at);  // NaN stays
          }
        },
        [&](int64_t b, M mask) HWY_ATTR {
          V value[row_places], result[row_results];
          for (int i = 0; i < row_places; ++i) value[i] = MaskedRead(mask, d, from + i * step + b);
          Result(value, result);
          for (int64_t j = 0; j < left; ++j) {
            const int64_t at = (first + j) * n + b;
            V last = hn::Add(result[j], start);
            if (finish.add) last = hn::Add(last, MaskedRead(mask, d, finish.add + at));
            hn::BlendedStore(hn::Min(high, hn::Max(low, last)), mask, d, y + at);
          }
        });
  }
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(WinogradRowsImage);
HWY_EXPORT(WinogradRowsResult);

constexpr double image_factors[row_places][row_places] = {
    {1, 0, -5.25, 0, 5.25, 0, -1, 0},      {0, 1, 1, -4.25, -4.25, 1, 1, 0},
    {0, -1, 1, 4.25, -4.25, -1, 1, 0},     {0, 0.5, 0.25, -2.5, -1.25, 2, 1, 0},
    {0, -0.5, 0.25, 2.5, -1.25, -2, 1, 0}, {0, 2, 4, -2.5, -5, 0.5, 1, 0},
    {0, -2, 4, 2.5, -5, -0.5, 1, 0},       {0, -1, 0, 5.25, 0, -5.25, 0, 1}};
constexpr double weight_factors[row_places][row_taps] = {
    {1, 0, 0, 0, 0},
    {-2.0 / 9, -2.0 / 9, -2.0 / 9, -2.0 / 9, -2.0 / 9},
    {-2.0 / 9, 2.0 / 9, -2.0 / 9, 2.0 / 9, -2.0 / 9},
    {1.0 / 90, 2.0 / 90, 4.0 / 90, 8.0 / 90, 16.0 / 90},
    {1.0 / 90, -2.0 / 90, 4.0 / 90, -8.0 / 90, 16.0 / 90},
    {32.0 / 45, 16.0 / 45, 8.0 / 45, 4.0 / 45, 2.0 / 45},
    {32.0 / 45, -16.0 / 45, 8.0 / 45, -4.0 / 45, 2.0 / 45},
    {0, 0, 0, 0, 1}};
constexpr double result_factors[row_results][row_places] = {{1, 1, 1, 1, 1, 1, 1, 0},
                                                            {0, 1, -1, 2, -2, 0.5, -0.5, 0},
                                                            {0, 1, 1, 4, 4, 0.25, 0.25, 0},
                                                            {0, 1, -1, 8, -8, 0.125, -0.125, 1}};

}  // namespace

namespace reference {

void winograd_rows_image(const RowTiles& s, const float* x, float* places) {
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t tile = 0; tile < s.tiles; ++tile)
      for (int64_t b = 0; b < s.n; ++b)
        for (int64_t p = 0; p < row_places; ++p) {
          double sum = 0;
          for (int64_t i = 0; i < row_places; ++i) {
            const int64_t column = row_results * tile + i;
            if (column < s.columns && image_factors[p][i] != 0)
              sum += image_factors[p][i] * x[row * s.pitch + column * s.n + b];
          }
          places[p * s.step + (row * s.tiles + tile) * s.n + b] = static_cast<float>(sum);
        }
}

void winograd_rows_weights(const float* w, int64_t count, float* u) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t p = 0; p < row_places; ++p) {
      double sum = 0;
      for (int64_t t = 0; t < row_taps; ++t) sum += weight_factors[p][t] * w[i * row_taps + t];
      u[p * count + i] = static_cast<float>(sum);
    }
}

void winograd_rows_result(const float* sums, int64_t step, int64_t columns, int64_t n, float bias,
                          float* y, const Finish& finish) {
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t b = 0; b < n; ++b) {
      double sum = bias;
      for (int64_t p = 0; p < row_places; ++p)
        if (const double factor = result_factors[column % row_results][p]; factor != 0)
          sum += factor * sums[p * step + column / row_results * n + b];
      const int64_t at = column * n + b;
      if (finish.add) sum += finish.add[at];
      const auto value = static_cast<float>(sum);
      y[at] = value < finish.low ? finish.low : value > finish.high ? finish.high : value;
    }
}

}  // namespace reference

void winograd_rows_image(const RowTiles& tiles, const float* x, float* places) {
  HWY_DYNAMIC_DISPATCH(WinogradRowsImage)(tiles, x, places);
}

// Few of them, and done once where weights stay as they are.
void winograd_rows_weights(const float* w, int64_t count, float* u) {
  reference::winograd_rows_weights(w, count, u);
}

void winograd_rows_result(const float* sums, int64_t step, int64_t columns, int64_t n, float bias,
                          float* y, const Finish& finish) {
  HWY_DYNAMIC_DISPATCH(WinogradRowsResult)(sums, step, columns, n, bias, y, finish);
}

}  // namespace mase::kernels
#endif
