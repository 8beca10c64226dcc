// SPDX-License-Identifier: Apache-2.0
// A vector of lanes stays in registers while all taps of its window are looked at.
#include "mase/engine/kernels/pool.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/pool.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace pool {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <class Vector>
HWY_INLINE Vector Larger(Vector most, Vector value) {  // most, where it is larger or NaN
  return hn::IfThenElse(hn::Or(hn::Ge(most, value), hn::IsNaN(most)), most, value);
}

HWY_INLINE float LargerOne(float most, float value) {  // without a branch
  return ((most >= value) | (most != most)) ? most : value;
}

// The lanes that this tap takes, and that no later one may have.
template <class Mask>
HWY_INLINE Mask Takes(V value, V most, Mask both_nan, Mask& free) {
  const auto takes =
      hn::And(free, hn::Or(hn::Eq(value, most), hn::And(hn::IsNaN(value), both_nan)));
  free = hn::AndNot(takes, free);
  return takes;
}

// kRows x kColumns taps; 0: as many as the window has.
template <int kRows, int kColumns, class Load>
HWY_INLINE V Largest(const Window& o, const float* x, const Load& load) {
  const int64_t rows = kRows ? kRows : o.rows, columns = kColumns ? kColumns : o.columns;
  V most = hn::Set(D(), -INFINITY);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const V value = load(x + r * o.row_step + c * o.column_step);
      most = kRows && r + c == 0 ? value : Larger(most, value);
    }
  return most;
}

template <int kRows, int kColumns>
HWY_NOINLINE void Max(const WindowRun& run, const float* x, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Window o = run.window;
  for (int64_t i = 0; i < run.pieces; ++i) {
    const float* from = x + run.from + i * run.step;
    float* to = y + run.to + i * run.lanes;
    int64_t first = 0;
    for (; first + lanes <= run.lanes; first += lanes)
      hn::StoreU(Largest<kRows, kColumns>(
                     o, from + first, [&](const float* at) HWY_ATTR { return hn::LoadU(d, at); }),
                 d, to + first);
    if (first == run.lanes) continue;
    const auto valid = hn::FirstN(d, static_cast<size_t>(run.lanes - first));
    const V most = Largest<kRows, kColumns>(
        o, from + first, [&](const float* at) HWY_ATTR { return MaskedRead(valid, d, at); });
    hn::BlendedStore(most, valid, d, to + first);
  }
}

// Windows of one sample that are two apart: even and odd values of a row side by side. Returns how
// many results it has computed.
template <size_t kLanes>
HWY_INLINE int64_t EverySecond(const Window& o, const float* x, float* y, int64_t count) {
  const hn::CappedTag<float, kLanes> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t own = o.columns % 2 ? count - 1 : count;  // a lone tap is read with its neighbour
  if (own < lanes) return 0;
  for (int64_t i = 0; i < own; i += lanes) {
    const int64_t at = i + lanes <= own ? i : own - lanes;  // the last may begin earlier
    auto most = hn::Set(d, -INFINITY);
    for (int64_t r = 0; r < o.rows; ++r)
      for (int64_t c = 0; c < o.columns; c += 2) {
        hn::Vec<decltype(d)> even, odd;
        hn::LoadInterleaved2(d, x + r * o.row_step + c + 2 * at, even, odd);
        most = Larger(most, even);
        if (c + 1 < o.columns) most = Larger(most, odd);
      }
    hn::StoreU(most, d, y + at);
  }
  return own;
}

// Windows that are apart, of few samples.
void Few(const WindowRun& run, const float* x, float* y) {
  const Window& o = run.window;
  int64_t done = 0;
  if (run.lanes == 1 && run.step == 2 && o.column_step == 1) {
    done = EverySecond<8>(o, x, y, run.pieces);  // planes are often no wider
    if (done == 0) done = EverySecond<4>(o, x, y, run.pieces);
  }
  for (int64_t i = done; i < run.pieces; ++i)
    for (int64_t b = 0; b < run.lanes; ++b) {
      const float* from = x + i * run.step + b;
      float most = -INFINITY;
      for (int64_t r = 0; r < o.rows; ++r)
        for (int64_t c = 0; c < o.columns; ++c)
          most = LargerOne(most, from[r * o.row_step + c * o.column_step]);
      y[i * run.lanes + b] = most;
    }
}

HWY_INLINE void MaxGradient(const Window& o, const float* x, const float* y, const float* up,
                            float* dx, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t first = 0; first < n; first += lanes) {
    const bool whole = first + lanes <= n;
    const auto valid = hn::FirstN(d, static_cast<size_t>(whole ? lanes : n - first));
    const V most = MaskedRead(valid, d, y + first), g = MaskedRead(valid, d, up + first);
    const auto nan = hn::IsNaN(most);
    auto free = valid;
    for (int64_t r = 0; r < o.rows; ++r)
      for (int64_t c = 0; c < o.columns; ++c) {
        const int64_t at = r * o.row_step + c * o.column_step + first;
        const auto takes = Takes(MaskedRead(valid, d, x + at), most, nan, free);
        const V sum = hn::Add(MaskedRead(valid, d, dx + at), hn::IfThenElseZero(takes, g));
        if (whole)
          hn::StoreU(sum, d, dx + at);
        else
          hn::BlendedStore(sum, valid, d, dx + at);
      }
  }
}

}  // namespace pool

void MaxPool(const PlaneWindows& s, const float* x, float* y) {
  each_run(s, [&](const WindowRun& run) HWY_ATTR {
    constexpr int64_t few = 8;
    if (run.pieces > 1 && run.lanes < few) return pool::Few(run, x + run.from, y + run.to);
    const bool usual = run.window.rows == 2 && run.window.columns == 2;
    const auto largest = usual ? pool::Max<2, 2> : pool::Max<0, 0>;
    largest(run, x, y);
  });
}

void MaxPoolGradient(const PlaneWindows& s, const float* x, const float* y, const float* up,
                     float* dx) {
  each_run(s, [&](const WindowRun& run) HWY_ATTR {
    for (int64_t i = 0; i < run.pieces; ++i) {
      const int64_t from = run.from + i * run.step, to = run.to + i * run.lanes;
      pool::MaxGradient(run.window, x + from, y + to, up + to, dx + from, run.lanes);
    }
  });
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(MaxPool);
HWY_EXPORT(MaxPoolGradient);

}  // namespace

namespace reference {

void max_pool(const PlaneWindows& s, const float* x, float* y) {
  each_result(s, [&](int64_t row, int64_t column) {
    for (int64_t b = 0; b < s.n; ++b) {
      float most = -INFINITY;
      each_tap(s, row, column, [&](int64_t, int64_t place) {
        const float value = x[place + b];
        if (!(most >= value || std::isnan(most))) most = value;
      });
      y[(row * s.width.result + column) * s.n + b] = most;
    }
  });
}

void max_pool_gradient(const PlaneWindows& s, const float* x, const float* y, const float* up,
                       float* dx) {
  each_result(s, [&](int64_t row, int64_t column) {
    for (int64_t b = 0; b < s.n; ++b) {
      const int64_t at = (row * s.width.result + column) * s.n + b;
      bool taken = false;
      each_tap(s, row, column, [&](int64_t, int64_t place) {
        const float value = x[place + b];
        if (taken || (value != y[at] && !(std::isnan(value) && std::isnan(y[at])))) return;
        dx[place + b] += up[at];
        taken = true;
      });
    }
  });
}

}  // namespace reference

void max_pool(const PlaneWindows& s, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(MaxPool)(s, x, y);
}

void max_pool_gradient(const PlaneWindows& s, const float* x, const float* y, const float* up,
                       float* dx) {
  HWY_DYNAMIC_DISPATCH(MaxPoolGradient)(s, x, y, up, dx);
}

}  // namespace mase::kernels
#endif
