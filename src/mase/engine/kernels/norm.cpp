// SPDX-License-Identifier: Apache-2.0
// Batch normalisation, channel by channel while the channel is in L1: mean, variance (two passes,
// so that nothing cancels), result with its relu; backward the masked sums and then dx. The relu's
// mask is computed again from x rather than stored.
#include <cmath>
#include <limits>

#include "mase/engine/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Sums of one piece of a row stay in single precision; pieces are added in double.
constexpr int64_t kPiece = 4096;

HWY_INLINE double LaneSum(V v) {
  const D d;
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v)));
}

// Calls body(value of this vector, accumulator index) over [begin, end), four accumulators in turn.
template <class Body>
HWY_INLINE double SumOver(int64_t n, const Body& body) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = begin + kPiece < n ? begin + kPiece : n;
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    int64_t b = begin;
    for (; b + 4 * lanes <= end; b += 4 * lanes) {
      s0 = body(b, s0);
      s1 = body(b + lanes, s1);
      s2 = body(b + 2 * lanes, s2);
      s3 = body(b + 3 * lanes, s3);
    }
    for (; b + lanes <= end; b += lanes) s0 = body(b, s0);
    if (b < end) {  // the padding may hold anything
      const V all = body(b, hn::Zero(d));
      s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(end - b)), all));
    }
    total += LaneSum(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  }
  return total;
}

HWY_INLINE double RowSum(const float* HWY_RESTRICT x, int64_t n) {
  const D d;
  return SumOver(n, [=](int64_t b, V s) HWY_ATTR { return hn::Add(s, hn::Load(d, x + b)); });
}

double SumRow(const float* x, int64_t n) { return RowSum(x, n); }

double RowDot(const float* HWY_RESTRICT x, const float* HWY_RESTRICT y, int64_t n) {
  const D d;
  return SumOver(n, [=](int64_t b, V s)
                        HWY_ATTR { return hn::MulAdd(hn::Load(d, x + b), hn::Load(d, y + b), s); });
}

enum class Limits { none, relu, both };

template <Limits kLimits>
HWY_INLINE void ApplyRow(const float* HWY_RESTRICT x, float* HWY_RESTRICT y, float mean,
                         float scale, const NormParameters& p, float bias, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V middle = hn::Set(d, mean), factor = hn::Set(d, scale), shift = hn::Set(d, bias),
          low = hn::Set(d, p.low), high = hn::Set(d, p.high);
  HWY_UNROLL(4)
  for (int64_t b = 0; b < n; b += lanes) {
    // mean - x rather than x - mean: this subtraction takes x from memory.
    V v = hn::NegMulAdd(hn::Sub(middle, hn::Load(d, x + b)), factor, shift);
    if (kLimits != Limits::none) v = hn::Max(low, v);  // in this order NaN stays
    if (kLimits == Limits::both) v = hn::Min(high, v);
    hn::Store(v, d, y + b);
  }
}

HWY_INLINE void Apply(const NormShape& s, const NormParameters& p, int64_t c, const float* x,
                      float* y, float mean, float inverse, RowHook hook) {
  const float scale = inverse * (p.weight ? p.weight[c] : 1.0f), bias = p.bias ? p.bias[c] : 0.0f;
  for (int64_t q = 0; q < s.positions; ++q) {
    const float* from = x + q * s.stride;
    float* to = y + q * s.stride;
    if (p.relu())
      ApplyRow<Limits::relu>(from, to, mean, scale, p, bias, s.n);
    else if (p.limited())
      ApplyRow<Limits::both>(from, to, mean, scale, p, bias, s.n);
    else
      ApplyRow<Limits::none>(from, to, mean, scale, p, bias, s.n);
    if (hook.call) hook.call(hook.context, to, s.n);
  }
}

// Channels that are worked on together: few enough for L1, enough to hide the latency of each
// other's sums, roots and divisions.
constexpr int64_t kGroup = 8;
// How many of them, at least `fewest` (2 or 4), so that each of their arrays has `floats` at most.
HWY_INLINE int64_t GroupSize(const NormShape& s, int64_t floats, int64_t fewest) {
  const int64_t fitting = floats / (s.positions * s.stride) / fewest * fewest;
  return fitting < fewest ? fewest : fitting < kGroup ? fitting : kGroup;
}

// Four rows at a time: their sums are independent of each other, and the lanes of all four are
// added up in one go. term(r, value, sum) adds what row r contributes.
template <class Term>
HWY_INLINE void AddFourRows(const float* const* rows, int64_t n, const Term& term,
                            double* HWY_RESTRICT totals) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = begin + kPiece < n ? begin + kPiece : n;
    V sum[4][2];
    for (auto& row : sum) row[0] = row[1] = hn::Zero(d);
    int64_t b = begin;
    for (; b + 2 * lanes <= end; b += 2 * lanes)
      for (int r = 0; r < 4; ++r) {
        sum[r][0] = term(r, hn::Load(d, rows[r] + b), sum[r][0]);
        sum[r][1] = term(r, hn::Load(d, rows[r] + b + lanes), sum[r][1]);
      }
    for (; b < end; b += lanes)
      for (int r = 0; r < 4; ++r) {
        const V more = term(r, hn::Load(d, rows[r] + b), sum[r][0]);
        // The padding may hold anything.
        sum[r][0] = b + lanes <= end ? more
                                     : hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(end - b)),
                                                      more, sum[r][0]);
      }
    float sums[4];
    SumFour(d, hn::Add(sum[0][0], sum[0][1]), hn::Add(sum[1][0], sum[1][1]),
            hn::Add(sum[2][0], sum[2][1]), hn::Add(sum[3][0], sum[3][1]), sums);
    for (int r = 0; r < 4; ++r) totals[r] += static_cast<double>(sums[r]);
  }
}

// The same for one to four channels of several rows each.
template <class Term>
HWY_INLINE void AddFourChannels(const NormShape& s, const float* x, int64_t channels,
                                const Term& term, double* HWY_RESTRICT totals) {
  const float* rows[4];  // missing channels repeat the last one
  for (int64_t r = 0; r < 4; ++r)
    rows[r] = x + (r < channels ? r : channels - 1) * s.positions * s.stride;
  for (int64_t q = 0; q < s.positions; ++q) {
    AddFourRows(rows, s.n, term, totals);
    for (const float*& row : rows) row += s.stride;
  }
}

// Equal values have that value as their mean, whatever their sum was rounded to: a relu behind this
// would otherwise let all of them through, or none, by the last bit.
void SettleEqualValues(const NormShape& s, const float* x, float& mean, float& variance) {
  for (int64_t q = 0; q < s.positions; ++q)
    for (int64_t b = 0; b < s.n; ++b)
      if (x[q * s.stride + b] != x[0]) return;
  mean = x[0];
  variance = 0;
}

// First all sums, then all squares: a mean is known long before it is needed.
void StatisticsGroup(const NormShape& s, const float* x, float* mean, float* variance,
                     int64_t channels) {
  const D d;
  const double share = 1.0 / static_cast<double>(s.positions * s.n);
  const int64_t size = s.positions * s.stride;
  float means[kGroup];
  for (int64_t c = 0; c < channels; c += 4) {
    double sums[4] = {};
    AddFourChannels(
        s, x + c * size, channels - c,
        [](int, V value, V sum) HWY_ATTR { return hn::Add(sum, value); }, sums);
    for (int64_t r = 0; r < 4; ++r) means[c + r] = static_cast<float>(sums[r] * share);
  }
  for (int64_t c = 0; c < channels; c += 4) {
    const V middle[4] = {hn::Set(d, means[c]), hn::Set(d, means[c + 1]), hn::Set(d, means[c + 2]),
                         hn::Set(d, means[c + 3])};
    double squares[4] = {};
    AddFourChannels(
        s, x + c * size, channels - c,
        [&](int r, V value, V sum) HWY_ATTR {
          const V below = hn::Sub(middle[r], value);
          return hn::MulAdd(below, below, sum);
        },
        squares);
    for (int64_t r = 0; r < 4 && c + r < channels; ++r) {
      mean[c + r] = means[c + r];
      variance[c + r] = static_cast<float>(squares[r] * share);
      if (variance[c + r] <= 1e-12f * (means[c + r] * means[c + r]))
        SettleEqualValues(s, x + (c + r) * size, mean[c + r], variance[c + r]);
    }
  }
}

// Channels [begin, end).
void StatisticsBlock(const NormShape& s, const float* x, float* mean, float* variance,
                     int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; c += kGroup)
    StatisticsGroup(s, x + c * s.positions * s.stride, mean + c, variance + c,
                    end - c < kGroup ? end - c : kGroup);
}

void ApplyBlock(const NormShape& s, const NormParameters& p, const float* x, const float* mean,
                const float* inverse, float* y, RowHook hook, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) {
    const int64_t at = c * s.positions * s.stride;
    Apply(s, p, c, x + at, y + at, mean[c], inverse[c], hook);
  }
}

void ForwardBlock(const NormShape& s, const NormParameters& p, const float* x, float* mean,
                  float* variance, float* inverse, float* y, RowHook hook, int64_t begin,
                  int64_t end) {
  const int64_t group = GroupSize(s, 4352, 4);
  for (int64_t first = begin; first < end; first += group) {
    const int64_t last = end - first < group ? end : first + group;
    StatisticsGroup(s, x + first * s.positions * s.stride, mean + first, variance + first,
                    last - first);
    for (int64_t c = first; c < last; ++c)
      inverse[c] = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance[c]) + p.eps));
    for (int64_t c = first; c < last; ++c) {
      const int64_t at = c * s.positions * s.stride;
      Apply(s, p, c, x + at, y + at, mean[c], inverse[c], hook);
    }
  }
}

// Where a gradient passes the relu, by what x lies below its mean: below or above an edge.
enum class Passes { everywhere, below, above };

struct Edge {
  Passes passes;
  float at;
};

// (x - mean) scale + bias > 0. The edge is rounded: of a result that is 0 but for rounding either
// derivative is right.
HWY_INLINE Edge EdgeOf(bool relu, float scale, float bias) {
  if (!relu) return {Passes::everywhere, 0.0f};
  const float inf = std::numeric_limits<float>::infinity();
  if (scale == 0) return {Passes::below, bias > 0 ? inf : -inf};
  return {scale < 0 ? Passes::above : Passes::below, bias / scale};
}

// g where it passes, else 0.
template <Passes kPasses>
HWY_INLINE V Passed(V below_mean, V edge, V g) {
  if (kPasses == Passes::below) return hn::IfThenElseZero(hn::Lt(below_mean, edge), g);
  if (kPasses == Passes::above) return hn::IfThenElseZero(hn::Gt(below_mean, edge), g);
  return g;
}

// What the gradient of a channel is made of.
struct Channel {
  const float *x, *g;
  float mean, edge;
  float scale, slope, offset;  // dx = g' scale + (mean - x) slope - offset
  float* dx;
};

// Rows at a time: what is to be done before and after a row of 256 samples takes as long as the
// row. As many as there are registers for.
constexpr int kMostRows = HWY_MAX_BYTES >= 64 ? 4 : 2;

// The sums of g' and of g' (mean - x) of kRows rows, lane by lane. Each is summed in the same order
// as alone.
template <Passes kPasses, int kRows>
HWY_INLINE void GradientSums(const Channel* rows, int64_t at, int64_t n, V (&sums)[2 * kMostRows]) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V one = hn::Set(d, 1.0f);
  const float *x[kRows], *g[kRows];
  V middle[kRows], edge[kRows], a[kRows][2], p[kRows][2];
  for (int r = 0; r < kRows; ++r) {
    x[r] = rows[r].x + at;
    g[r] = rows[r].g + at;
    middle[r] = hn::Set(d, rows[r].mean);
    edge[r] = hn::Set(d, rows[r].edge);
    a[r][0] = a[r][1] = p[r][0] = p[r][1] = hn::Zero(d);
  }
  int64_t b = 0;
  for (; b + 2 * lanes <= n; b += 2 * lanes)
    for (int r = 0; r < kRows; ++r)
      for (int k = 0; k < 2; ++k) {
        const V below = hn::Sub(middle[r], hn::Load(d, x[r] + b + k * lanes));
        const V up = Passed<kPasses>(below, edge[r], hn::Load(d, g[r] + b + k * lanes));
        // With masks in registers of their own adders have time for this; else they are busy with
        // the other two.
        a[r][k] = HWY_MAX_BYTES >= 64 ? hn::Add(a[r][k], up) : hn::MulAdd(up, one, a[r][k]);
        p[r][k] = hn::MulAdd(up, below, p[r][k]);
      }
  for (; b < n; b += lanes)
    for (int r = 0; r < kRows; ++r) {
      V below = hn::Sub(middle[r], hn::Load(d, x[r] + b));
      V up = Passed<kPasses>(below, edge[r], hn::Load(d, g[r] + b));
      if (b + lanes > n) {  // the padding may hold anything
        const auto valid = hn::FirstN(d, static_cast<size_t>(n - b));
        up = hn::IfThenElseZero(valid, up);
        below = hn::IfThenElseZero(valid, below);
      }
      a[r][0] = hn::Add(a[r][0], up);
      p[r][0] = hn::MulAdd(up, below, p[r][0]);
    }
  for (int r = 0; r < kRows; ++r) {
    sums[2 * r] = hn::Add(a[r][0], a[r][1]);
    sums[2 * r + 1] = hn::Add(p[r][0], p[r][1]);
  }
}

template <Passes kPasses, int kRows>
HWY_INLINE void GradientRows(const Channel* rows, int64_t at, int64_t n, bool accumulate) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float *x[kRows], *g[kRows];
  float* dx[kRows];
  V middle[kRows], edge[kRows], factor[kRows], steep[kRows], level[kRows];
  for (int r = 0; r < kRows; ++r) {
    x[r] = rows[r].x + at;
    g[r] = rows[r].g + at;
    dx[r] = rows[r].dx + at;
    middle[r] = hn::Set(d, rows[r].mean);
    edge[r] = hn::Set(d, rows[r].edge);
    factor[r] = hn::Set(d, rows[r].scale);
    steep[r] = hn::Set(d, rows[r].slope);
    level[r] = hn::Set(d, rows[r].offset);
  }
  const auto value = [&](int r, int64_t b) HWY_ATTR {
    const V below = hn::Sub(middle[r], hn::Load(d, x[r] + b));
    const V up = Passed<kPasses>(below, edge[r], hn::Load(d, g[r] + b));
    return hn::MulAdd(below, steep[r], hn::MulSub(up, factor[r], level[r]));
  };
  if (accumulate) {
    for (int64_t b = 0; b < n; b += lanes)
      for (int r = 0; r < kRows; ++r)
        hn::Store(hn::Add(value(r, b), hn::Load(d, dx[r] + b)), d, dx[r] + b);
  } else {
    HWY_UNROLL(2)
    for (int64_t b = 0; b < n; b += lanes)
      for (int r = 0; r < kRows; ++r) hn::Store(value(r, b), d, dx[r] + b);
  }
}

// Calls body.operator()<passes, rows>(first) for channels side by side that pass on the same side
// of their edge, kMostRows of them or two, and for single ones.
template <class Body>
HWY_INLINE void OverChannels(const Edge* edges, int64_t channels, const Body& body) {
  for (int64_t c = 0; c < channels;) {
    const Passes passes = edges[c].passes;
    const auto alike = [&](int64_t count) {
      if (c + count > channels) return false;
      for (int64_t k = 1; k < count; ++k)
        if (edges[c + k].passes != passes) return false;
      return true;
    };
    const auto call = [&]<Passes kPasses>() HWY_ATTR {
      const int64_t count = alike(kMostRows) ? kMostRows : alike(2) ? 2 : 1;
      if (count == kMostRows)
        body.template operator()<kPasses, kMostRows>(c);
      else if (count == 2)
        body.template operator()<kPasses, 2>(c);
      else
        body.template operator()<kPasses, 1>(c);
      c += count;
    };
    if (passes == Passes::below) {
      call.template operator()<Passes::below>();
    } else if (passes == Passes::everywhere) {
      call.template operator()<Passes::everywhere>();
    } else {
      body.template operator()<Passes::above, 1>(c);
      ++c;
    }
  }
}

// At most kGroup channels, from `first` on: their rows and edges.
HWY_INLINE void Describe(const NormShape& s, const NormParameters& p, const float* x,
                         const float* g, const float* mean, const float* inverse, int64_t first,
                         int64_t channels, Channel* rows, Edge* edges) {
  for (int64_t k = 0; k < channels; ++k) {
    const int64_t c = first + k, at = c * s.positions * s.stride;
    const float scale = inverse[c] * (p.weight ? p.weight[c] : 1.0f);
    edges[k] = EdgeOf(p.relu(), scale, p.bias ? p.bias[c] : 0.0f);
    rows[k] = {x + at, g + at, mean[c], edges[k].at, scale, 0, 0, nullptr};
  }
}

void SumsGroup(const NormShape& s, const Channel* rows, const Edge* edges, int64_t channels,
               const float* inverse, float* sum_g, float* sum_gx) {
  const auto add = [&]<Passes kPasses, int kRows>(int64_t c) HWY_ATTR {
    const D d;
    double total[kRows] = {}, product[kRows] = {};
    for (int64_t q = 0; q < s.positions; ++q)
      for (int64_t begin = 0; begin < s.n; begin += kPiece) {
        const int64_t count = s.n - begin < kPiece ? s.n - begin : kPiece;
        V sums[2 * kMostRows];
        for (V& v : sums) v = hn::Zero(d);
        GradientSums<kPasses, kRows>(rows + c, q * s.stride + begin, count, sums);
        float all[2 * kMostRows];
        for (int k = 0; k < 2 * kRows; k += 4)
          SumFour(d, sums[k], sums[k + 1], sums[k + 2], sums[k + 3], all + k);
        for (int k = 0; k < kRows; ++k) {
          total[k] += static_cast<double>(all[2 * k]);
          product[k] -= static_cast<double>(all[2 * k + 1]);
        }
      }
    for (int k = 0; k < kRows; ++k) {
      sum_g[c + k] = static_cast<float>(total[k]);
      sum_gx[c + k] = static_cast<float>(product[k] * inverse[c + k]);
    }
  };
  OverChannels(edges, channels, add);
}

void GradientGroup(const NormShape& s, Channel* rows, const Edge* edges, int64_t channels,
                   const float* inverse, const float* sum_g, const float* sum_gx, double count,
                   float* dx, bool accumulate) {
  const double part = count > 0 ? 1 / count : 0;
  for (int64_t c = 0; c < channels; ++c) {
    const double share = rows[c].scale * part;
    rows[c].offset = static_cast<float>(sum_g[c] * share);
    rows[c].slope = static_cast<float>(sum_gx[c] * share * inverse[c]);
    rows[c].dx = dx + c * s.positions * s.stride;
  }
  const auto apply = [&]<Passes kPasses, int kRows>(int64_t c) HWY_ATTR {
    for (int64_t q = 0; q < s.positions; ++q)
      GradientRows<kPasses, kRows>(rows + c, q * s.stride, s.n, accumulate);
  };
  OverChannels(edges, channels, apply);
}

// Channels [begin, end).
void SumsBlock(const NormShape& s, const NormParameters& p, const float* x, const float* g,
               const float* mean, const float* inverse, float* sum_g, float* sum_gx, int64_t begin,
               int64_t end) {
  Channel rows[kGroup];
  Edge edges[kGroup];
  for (int64_t c = begin; c < end; c += kGroup) {
    const int64_t count = end - c < kGroup ? end - c : kGroup;
    Describe(s, p, x, g, mean, inverse, c, count, rows, edges);
    SumsGroup(s, rows, edges, count, inverse + c, sum_g + c, sum_gx + c);
  }
}

void GradientBlock(const NormShape& s, const NormParameters& p, const float* x, const float* g,
                   const float* mean, const float* inverse, const float* sum_g, const float* sum_gx,
                   double count, float* dx, bool accumulate, int64_t begin, int64_t end) {
  Channel rows[kGroup];
  Edge edges[kGroup];
  for (int64_t c = begin; c < end; c += kGroup) {
    const int64_t channels = end - c < kGroup ? end - c : kGroup;
    Describe(s, p, x, g, mean, inverse, c, channels, rows, edges);
    GradientGroup(s, rows, edges, channels, inverse + c, sum_g + c, sum_gx + c, count,
                  dx + c * s.positions * s.stride, accumulate);
  }
}

void BackwardBlock(const NormShape& s, const NormParameters& p, const float* x, const float* g,
                   const float* mean, const float* inverse, float* sum_g, float* sum_gx, float* dx,
                   bool accumulate, int64_t begin, int64_t end) {
  const auto count = static_cast<double>(s.positions * s.n);
  Channel rows[kGroup];
  Edge edges[kGroup];
  const int64_t group = GroupSize(s, 2304, 2);
  for (int64_t c = begin; c < end; c += group) {
    const int64_t channels = end - c < group ? end - c : group;
    Describe(s, p, x, g, mean, inverse, c, channels, rows, edges);
    SumsGroup(s, rows, edges, channels, inverse + c, sum_g + c, sum_gx + c);
    if (dx)
      GradientGroup(s, rows, edges, channels, inverse + c, sum_g + c, sum_gx + c, count,
                    dx + c * s.positions * s.stride, accumulate);
  }
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "mase/engine/kernels/parallel.h"

namespace mase::kernels {
namespace {

HWY_EXPORT(SumRow);
HWY_EXPORT(RowDot);
HWY_EXPORT(StatisticsBlock);
HWY_EXPORT(ApplyBlock);
HWY_EXPORT(ForwardBlock);
HWY_EXPORT(SumsBlock);
HWY_EXPORT(GradientBlock);
HWY_EXPORT(BackwardBlock);

// Channels are independent: threads take blocks of them where there is enough to do.
template <class Body>
void over_channels(const NormShape& s, const Body& body) {
  const bool parallel =
      s.threads > 1 && s.channels > 1 && s.channels * s.positions * s.n >= (int64_t{1} << 17);
  const int64_t pieces = parallel ? s.threads : 1;
  const int64_t size = (s.channels + pieces - 1) / pieces;
  for_each_piece(pieces, s.threads, [&](int64_t i) {
    const int64_t begin = std::min(s.channels, i * size);
    body(begin, std::min(s.channels, begin + size));
  });
}

}  // namespace

double sum(const float* in, int64_t n) {
  if (n < 8) return reference::sum(in, n);
  return HWY_DYNAMIC_DISPATCH(SumRow)(in, n);
}

double dot(const float* a, const float* b, int64_t n) {
  if (n < 8) return reference::dot(a, b, n);
  return HWY_DYNAMIC_DISPATCH(RowDot)(a, b, n);
}

void norm_statistics(const NormShape& s, const float* x, float* mean, float* variance) {
  over_channels(s, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(StatisticsBlock)(s, x, mean, variance, begin, end);
  });
}

void norm_apply(const NormShape& s, const NormParameters& p, const float* x, const float* mean,
                const float* inverse, float* y, RowHook hook) {
  over_channels(s, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ApplyBlock)(s, p, x, mean, inverse, y, hook, begin, end);
  });
}

void norm_forward(const NormShape& s, const NormParameters& p, const float* x, float* mean,
                  float* variance, float* inverse, float* y, RowHook hook) {
  over_channels(s, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ForwardBlock)(s, p, x, mean, variance, inverse, y, hook, begin, end);
  });
}

void norm_gradient_sums(const NormShape& s, const NormParameters& p, const float* x, const float* g,
                        const float* mean, const float* inverse, float* sum_g, float* sum_gx) {
  over_channels(s, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SumsBlock)(s, p, x, g, mean, inverse, sum_g, sum_gx, begin, end);
  });
}

void norm_gradient_apply(const NormShape& s, const NormParameters& p, const float* x,
                         const float* g, const float* mean, const float* inverse,
                         const float* sum_g, const float* sum_gx, double count, float* dx,
                         bool accumulate) {
  over_channels(s, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(GradientBlock)
    (s, p, x, g, mean, inverse, sum_g, sum_gx, count, dx, accumulate, begin, end);
  });
}

void norm_backward(const NormShape& s, const NormParameters& p, const float* x, const float* g,
                   const float* mean, const float* inverse, float* sum_g, float* sum_gx, float* dx,
                   bool accumulate) {
  over_channels(s, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(BackwardBlock)
    (s, p, x, g, mean, inverse, sum_g, sum_gx, dx, accumulate, begin, end);
  });
}

}  // namespace mase::kernels
#endif
