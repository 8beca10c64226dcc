// SPDX-License-Identifier: Apache-2.0
// Vectors of lanes whose sums stay in registers over all taps of their window, four at a time.
// Windows of 3x3, which nearly all are, and what an edge leaves of them keep their weights in
// registers. Sums have one fixed order per result.
#include "mase/engine/kernels/depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/depthwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace depthwise {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

// The weights of kRows x kColumns taps in registers; of any other window they stay in memory.
template <int kRows, int kColumns>
struct Weights {
  V values[kRows][kColumns];
  HWY_INLINE Weights(const float* w, int64_t step) {
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) values[r][c] = hn::Set(D(), w[r * step + c]);
  }
  HWY_INLINE V at(int64_t r, int64_t c) const { return values[r][c]; }
  static HWY_INLINE int64_t rows(const Window&) { return kRows; }
  static HWY_INLINE int64_t columns(const Window&) { return kColumns; }
};

template <>
struct Weights<0, 0> {
  const float* w;
  int64_t step;
  HWY_INLINE Weights(const float* from, int64_t apart) : w(from), step(apart) {}
  HWY_INLINE V at(int64_t r, int64_t c) const { return hn::Set(D(), w[r * step + c]); }
  static HWY_INLINE int64_t rows(const Window& o) { return o.rows; }
  static HWY_INLINE int64_t columns(const Window& o) { return o.columns; }
};

// kVectors vectors of results, `from_step` apart in the rows of the image and `to_step` in the
// result; kMasked: the lanes of `mask` of each.
template <int kVectors, bool kMasked, class W>
HWY_INLINE void Sums(const Window& o, const W& weights, V bias, const float* const* rows,
                     int64_t from_at, int64_t from_step, float* y, int64_t to_step,
                     const Finish& finish, M mask) {
  const D d;
  V sum[kVectors];
  for (V& v : sum) v = bias;
  for (int64_t r = 0; r < W::rows(o); ++r)
    for (int64_t c = 0; c < W::columns(o); ++c) {
      const float* from = rows[r] + from_at + c * o.column_step;
      const V weight = weights.at(r, c);
      for (int v = 0; v < kVectors; ++v) {
        const float* own = from + v * from_step;
        const V value = kMasked ? MaskedRead(mask, d, own) : hn::LoadU(d, own);
        sum[v] = hn::MulAdd(weight, value, sum[v]);
      }
    }
  const V low = hn::Set(d, finish.low), high = hn::Set(d, finish.high);
  for (int v = 0; v < kVectors; ++v) {
    V result = sum[v];
    if (finish.add) {
      const float* add = finish.add + v * to_step;
      result = hn::Add(result, kMasked ? MaskedRead(mask, d, add) : hn::LoadU(d, add));
    }
    result = hn::Min(high, hn::Max(low, result));  // in this order NaN stays
    if (kMasked)
      hn::BlendedStore(result, mask, d, y + v * to_step);
    else
      hn::StoreU(result, d, y + v * to_step);
  }
}

// `count` neighbouring lanes, whose windows begin at `at` of the rows.
template <class W>
HWY_INLINE void Lanes(const Window& o, const W& weights, V bias, const float* const* rows,
                      int64_t at, float* y, int64_t count, const Finish& finish) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::FirstN(d, static_cast<size_t>(lanes));
  int64_t first = 0;
  for (; first + 4 * lanes <= count; first += 4 * lanes)
    Sums<4, false>(o, weights, bias, rows, at + first, lanes, y + first, lanes, finish.at(first),
                   all);
  for (; first + 2 * lanes <= count; first += 2 * lanes)
    Sums<2, false>(o, weights, bias, rows, at + first, lanes, y + first, lanes, finish.at(first),
                   all);
  for (; first + lanes <= count; first += lanes)
    Sums<1, false>(o, weights, bias, rows, at + first, lanes, y + first, lanes, finish.at(first),
                   all);
  if (first == count) return;
  // What is added may be y itself, and may be added once only. Otherwise the last vector begins
  // earlier, and its first lanes are computed twice, alike.
  if (!finish.add && count >= lanes)
    Sums<1, false>(o, weights, bias, rows, at + count - lanes, lanes, y + count - lanes, lanes,
                   finish, all);
  else
    Sums<1, true>(o, weights, bias, rows, at + first, lanes, y + first, lanes, finish.at(first),
                  hn::FirstN(d, static_cast<size_t>(count - first)));
}

// `rows` are those of the taps inside, from where the first result's window begins.
template <class W>
HWY_NOINLINE void Results(const WindowRun& run, const float* w, int64_t weight_step, float bias,
                          const float* const* rows, float* y, const Finish& finish) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const W weights(w + run.tap, weight_step);
  const V start = hn::Set(d, bias);
  int64_t i = 0;
  // Short pieces, several at a time: one by one each would wait for its own sums.
  if (run.lanes == lanes) {
    const auto all = hn::FirstN(d, static_cast<size_t>(lanes));
    for (; i + 4 <= run.pieces; i += 4) {
      const int64_t to = run.to + i * run.lanes;
      Sums<4, false>(run.window, weights, start, rows, i * run.step, run.step, y + to, run.lanes,
                     finish.at(to), all);
    }
  } else if (run.lanes < lanes) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(run.lanes));
    for (; i + 4 <= run.pieces; i += 4) {
      const int64_t to = run.to + i * run.lanes;
      Sums<4, true>(run.window, weights, start, rows, i * run.step, run.step, y + to, run.lanes,
                    finish.at(to), mask);
    }
  }
  for (; i < run.pieces; ++i) {
    const int64_t to = run.to + i * run.lanes;
    Lanes(run.window, weights, start, rows, i * run.step, y + to, run.lanes, finish.at(to));
  }
}

// By the weights that fit into registers.
HWY_INLINE void AnyResults(const WindowRun& run, const float* w, int64_t weight_step, float bias,
                           const float* const* inside, float* y, const Finish& finish) {
  const int64_t rows = run.window.rows, columns = run.window.columns;
  auto* results = Results<Weights<0, 0>>;
  if (columns == 3 && rows == 3) results = Results<Weights<3, 3>>;
  if (columns == 3 && rows == 2) results = Results<Weights<2, 3>>;
  if (columns == 2 && rows == 3) results = Results<Weights<3, 2>>;
  results(run, w, weight_step, bias, inside, y, finish);
}

// The products of a run with all taps of its windows, added to the sums of the taps.
template <int kRows, int kColumns>
HWY_NOINLINE void Dots(const WindowRun& run, int64_t weight_step, const float* g, const float* x,
                       V* all_sums) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Window& o = run.window;
  const int64_t rows = kRows ? kRows : o.rows, columns = kColumns ? kColumns : o.columns;
  constexpr int kept = kRows ? kRows * kColumns : 1;
  V own[kept];
  V* sums = all_sums + run.tap;
  if constexpr (kRows > 0)
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) own[r * kColumns + c] = sums[r * weight_step + c];
  for (int64_t i = 0; i < run.pieces; ++i) {
    const float* ups = g + run.to + i * run.lanes;
    const float* values = x + run.from + i * run.step;
    for (int64_t first = 0; first < run.lanes; first += lanes) {
      const int64_t left = run.lanes - first;
      const auto mask = hn::FirstN(d, static_cast<size_t>(left < lanes ? left : lanes));
      const V up = MaskedRead(mask, d, ups + first);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          V& sum = kRows ? own[r * columns + c] : sums[r * weight_step + c];
          const float* from = values + r * o.row_step + c * o.column_step + first;
          sum = hn::MulAdd(up, MaskedRead(mask, d, from), sum);
        }
    }
  }
  if constexpr (kRows > 0)
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) sums[r * weight_step + c] = own[r * kColumns + c];
}

}  // namespace depthwise

void DepthwiseForward(const PlaneWindows& s, const float* w, float bias, const float* x, float* y,
                      const Finish& finish) {
  each_run(s, [&](const WindowRun& run) HWY_ATTR {
    const float* rows[most_depthwise_taps];
    for (int64_t r = 0; r < run.window.rows; ++r) rows[r] = x + run.from + r * run.window.row_step;
    depthwise::AnyResults(run, w, s.width.kernel, bias, rows, y, finish);
  });
}

void DepthwiseRow(const DepthwiseRows& s, const float* w, const float* bias, float* y) {
  const int64_t taps = s.windows.taps();
  for (int64_t c = 0; c < s.channels; ++c)
    each_run_of_row(s.windows, s.inside, 0, 0, [&](const WindowRun& run) HWY_ATTR {
      const float* rows[most_depthwise_taps];
      for (int64_t r = 0; r < run.window.rows; ++r) rows[r] = s.rows[r] + c * s.x_stride + run.from;
      depthwise::AnyResults(run, w + c * taps, s.windows.width.kernel, bias ? bias[c] : 0.0f, rows,
                            y + c * s.y_stride, {s.low, s.high, nullptr});
    });
}

void DepthwiseGradient(const PlaneWindows& s, const float* g, const float* x, double* totals) {
  using namespace depthwise;
  const D d;
  const int64_t taps = s.taps();
  constexpr int64_t most_together = 4096;  // lanes whose products are added up in float32
  V sums[most_depthwise_taps];
  for (int64_t t = 0; t < taps; ++t) {
    sums[t] = hn::Zero(d);
    totals[t] = 0;
  }
  int64_t lanes = 0;
  const auto flush = [&]() HWY_ATTR {
    for (int64_t t = 0; t < taps; ++t) {
      totals[t] += hn::GetLane(hn::SumOfLanes(d, sums[t]));
      sums[t] = hn::Zero(d);
    }
    lanes = 0;
  };
  each_run(s, [&](const WindowRun& run) HWY_ATTR {
    if (run.window.empty()) return;
    const auto dots = run.window.rows == 3 && run.window.columns == 3 ? Dots<3, 3> : Dots<0, 0>;
    dots(run, s.width.kernel, g, x, sums);
    lanes += run.pieces * run.lanes;
    if (lanes >= most_together) flush();
  });
  flush();
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(DepthwiseForward);
HWY_EXPORT(DepthwiseRow);
HWY_EXPORT(DepthwiseGradient);

}  // namespace

namespace reference {

void depthwise(const PlaneWindows& s, const float* w, float bias, const float* x, float* y,
               const Finish& finish) {
  each_result(s, [&](int64_t row, int64_t column) {
    for (int64_t b = 0; b < s.n; ++b) {
      double sum = bias;
      each_tap(s, row, column, [&](int64_t tap, int64_t place) {
        sum += static_cast<double>(w[tap]) * x[place + b];
      });
      const int64_t at = (row * s.width.result + column) * s.n + b;
      if (finish.add) sum += finish.add[at];
      const auto value = static_cast<float>(sum);
      y[at] = value < finish.low ? finish.low : value > finish.high ? finish.high : value;
    }
  });
}

void depthwise_row(const DepthwiseRows& s, const float* w, const float* bias, float* y) {
  const WindowAxis& width = s.windows.width;
  const int64_t n = s.windows.n;
  for (int64_t c = 0; c < s.channels; ++c)
    for (int64_t column = 0; column < width.result; ++column)
      for (int64_t b = 0; b < n; ++b) {
        double sum = bias ? bias[c] : 0.0f;
        for (int64_t ky = s.inside.begin; ky < s.inside.end; ++ky)
          for (int64_t kx = 0; kx < width.kernel; ++kx) {
            const int64_t at = width.place(column, kx);
            if (at < 0 || at >= width.size) continue;
            sum += static_cast<double>(w[c * s.windows.taps() + ky * width.kernel + kx]) *
                   s.rows[ky - s.inside.begin][c * s.x_stride + at * n + b];
          }
        const auto value = static_cast<float>(sum);
        y[c * s.y_stride + column * n + b] = value < s.low    ? s.low
                                             : value > s.high ? s.high
                                                              : value;
      }
}

void depthwise_gradient(const PlaneWindows& s, const float* g, const float* x, float* dw,
                        bool accumulate) {
  std::vector<double> totals(static_cast<size_t>(s.taps()), 0.0);
  each_result(s, [&](int64_t row, int64_t column) {
    const float* ups = g + (row * s.width.result + column) * s.n;
    each_tap(s, row, column, [&](int64_t tap, int64_t place) {
      for (int64_t b = 0; b < s.n; ++b)
        totals[static_cast<size_t>(tap)] += static_cast<double>(ups[b]) * x[place + b];
    });
  });
  for (size_t tap = 0; tap < totals.size(); ++tap)
    dw[tap] = static_cast<float>(totals[tap] + (accumulate ? dw[tap] : 0.0f));
}

}  // namespace reference

void depthwise(const PlaneWindows& s, const float* w, float bias, const float* x, float* y,
               const Finish& finish) {
  HWY_DYNAMIC_DISPATCH(DepthwiseForward)(s, w, bias, x, y, finish);
}

void depthwise_row(const DepthwiseRows& s, const float* w, const float* bias, float* y) {
  HWY_DYNAMIC_DISPATCH(DepthwiseRow)(s, w, bias, y);
}

void depthwise_gradient(const PlaneWindows& s, const float* g, const float* x, float* dw,
                        bool accumulate) {
  double totals[most_depthwise_taps];
  HWY_DYNAMIC_DISPATCH(DepthwiseGradient)(s, g, x, totals);
  for (int64_t tap = 0; tap < s.taps(); ++tap)
    dw[tap] = static_cast<float>(totals[tap] + (accumulate ? dw[tap] : 0.0f));
}

}  // namespace mase::kernels
#endif
