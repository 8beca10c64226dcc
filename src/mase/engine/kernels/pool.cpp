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

// most, where it is larger, as large or NaN.
HWY_INLINE V Larger(V most, V value) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  // The maximum is the second operand where both are equal or one is NaN.
  return hn::IfThenElse(hn::IsNaN(value), value, hn::Max(value, most));
#else
  return hn::IfThenElse(hn::Or(hn::Ge(most, value), hn::IsNaN(most)), most, value);
#endif
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

#if HWY_TARGET != HWY_SCALAR
// Windows of one sample that are two apart: even and odd values of a row side by side.
template <int kRows, int kColumns>
HWY_NOINLINE void EverySecond(const WindowBlock& block, const float* x, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Window o = block.first.window;
  const int64_t rows = kRows ? kRows : o.rows, columns = kColumns ? kColumns : o.columns;
  const auto some = [&](int64_t floats) HWY_ATTR {  // the first of a vector
    return hn::FirstN(d, static_cast<size_t>(HWY_MAX(int64_t{0}, HWY_MIN(lanes, floats))));
  };
  const int64_t count = block.first.pieces;
  for (int64_t i = 0; i < count; i += lanes) {
    const int64_t left = 2 * (count - i);
    const auto first = some(left), second = some(left - lanes), own = some(count - i);
    const auto lone_first = some(left - 1), lone_second = some(left - 1 - lanes);
    for (int64_t row = 0; row < block.rows; ++row) {
      const float* at = x + block.first.from + row * block.from_step + 2 * i;
      V most = hn::Set(d, -INFINITY);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; c += 2) {
          const bool lone = c + 1 == columns;  // its neighbour may not be there
          const float* from = at + r * o.row_step + c;
          const V low = MaskedRead(lone ? lone_first : first, d, from);
          const V high = MaskedRead(lone ? lone_second : second, d, from + lanes);
          const V even = hn::ConcatEven(d, high, low);
          most = kRows && r + c == 0 ? even : Larger(most, even);
          if (!lone) most = Larger(most, hn::ConcatOdd(d, high, low));
        }
      hn::BlendedStore(most, own, d, y + block.first.to + row * block.to_step + i);
    }
  }
}
#endif

// Windows that are apart, of few samples.
void Few(const WindowRun& run, const float* x, float* y) {
  const Window& o = run.window;
  for (int64_t i = 0; i < run.pieces; ++i)
    for (int64_t b = 0; b < run.lanes; ++b) {
      const float* from = x + run.from + i * run.step + b;
      float most = -INFINITY;
      for (int64_t r = 0; r < o.rows; ++r)
        for (int64_t c = 0; c < o.columns; ++c)
          most = LargerOne(most, from[r * o.row_step + c * o.column_step]);
      y[run.to + i * run.lanes + b] = most;
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
  each_block(s, [&](const WindowBlock& block) HWY_ATTR {
    const WindowRun& run = block.first;
    const bool usual = run.window.rows == 2 && run.window.columns == 2;
#if HWY_TARGET != HWY_SCALAR
    if (run.lanes == 1 && run.step == 2 && run.window.column_step == 1)
      return usual ? pool::EverySecond<2, 2>(block, x, y) : pool::EverySecond<0, 0>(block, x, y);
#endif
    constexpr int64_t few = 8;
    const auto largest = run.pieces > 1 && run.lanes < few ? pool::Few
                         : usual                           ? pool::Max<2, 2>
                                                           : pool::Max<0, 0>;
    for (int64_t row = 0; row < block.rows; ++row) largest(block.row(row), x, y);
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
