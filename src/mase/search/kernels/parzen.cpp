// SPDX-License-Identifier: Apache-2.0
#include "mase/search/kernels/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/search/kernels/parzen.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::search::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<double>;

// Each of the following takes vectors of any width, one number for what is left over. Nothing is
// fused into one rounding: bits must not depend on the machine.

constexpr size_t together = 4;  // points whose kernels are loaded once
using Near = hn::CappedTag<float, padding>;

// Terms in single precision of `together` points, and the largest of each. Sums only grow, so once
// all of a vector are below their point's floor, the rest of the dimensions is left out. Gives how
// many vectors are left, and where they begin.
size_t NearTerms(const Normals& normals, const float* HWY_RESTRICT shares,
                 const float* const* HWY_RESTRICT terms, size_t count, float depth,
                 float* HWY_RESTRICT near, float* HWY_RESTRICT largest,
                 uint32_t* HWY_RESTRICT begins) {
  const Near d;
  const size_t lanes = hn::Lanes(d), dimensions = normals.dimensions;
  float floors[together];
  std::fill(largest, largest + together, -std::numeric_limits<float>::infinity());
  std::fill(floors, floors + together, -std::numeric_limits<float>::infinity());
  const size_t blocks = (count + lanes - 1) / lanes;
  size_t live = 0;
  for (size_t block = 0; block < blocks; ++block) {
    // The first, with the prior, then from the latest on: they are near what is asked about.
    const size_t i = (block == 0 ? 0 : blocks - block) * lanes;
    auto a = hn::LoadU(d, terms[0] + i), b = hn::LoadU(d, terms[1] + i),
         c = hn::LoadU(d, terms[2] + i), e = hn::LoadU(d, terms[3] + i);
    constexpr size_t between = 4;  // dimensions from look to look
    bool left = true;
    for (size_t k = 0; k < dimensions && left;) {
      for (const size_t end = std::min(k + between, dimensions); k < end; ++k) {
        const auto scale = hn::LoadU(d, normals.scale[k] + i),
                   offset = hn::LoadU(d, normals.offset[k] + i);
        const auto next = [&](auto sum, size_t p) HWY_ATTR {
          const auto z = hn::MulSub(hn::Set(d, shares[p * dimensions + k]), scale, offset);
          return hn::NegMulAdd(z, z, sum);
        };
        a = next(a, 0);
        b = next(b, 1);
        c = next(c, 2);
        e = next(e, 3);
      }
      const auto some =
          hn::Or(hn::Or(hn::Gt(a, hn::Set(d, floors[0])), hn::Gt(b, hn::Set(d, floors[1]))),
                 hn::Or(hn::Gt(c, hn::Set(d, floors[2])), hn::Gt(e, hn::Set(d, floors[3]))));
      left = !hn::AllFalse(d, some);
    }
    if (!left) continue;
    begins[live++] = static_cast<uint32_t>(i);
    const auto keep = [&](auto sum, size_t p) HWY_ATTR {
      hn::StoreU(sum, d, near + p * count + i);
      largest[p] = std::max(largest[p], hn::GetLane(hn::MaxOfLanes(d, sum)));
      floors[p] = largest[p] - depth;
    };
    keep(a, 0);
    keep(b, 1);
    keep(c, 2);
    keep(e, 3);
  }
  return live;
}

// Places of the numbers above `floor` in vectors that begin at `begins`; behind the places there is
// room for one more vector.
size_t Above(const float* HWY_RESTRICT numbers, const uint32_t* HWY_RESTRICT begins, size_t vectors,
             float floor, uint32_t* HWY_RESTRICT places) {
  const Near d;
  const hn::RebindToUnsigned<Near> du;
  size_t found = 0;
  for (size_t v = 0; v < vectors; ++v) {
    const auto above = hn::Gt(hn::LoadU(d, numbers + begins[v]), hn::Set(d, floor));
    if (hn::AllFalse(d, above)) continue;
    const auto here = hn::Iota(du, begins[v]);
    hn::StoreU(hn::Compress(here, hn::RebindMask(du, above)), du, places + found);
    found += hn::CountTrue(d, above);
  }
  return found;
}

// The squares of some kernels at a point, subtracted from their terms one dimension after the
// other. Several sums at a time, so that none waits for the other.
template <size_t kernels>
void SubtractSquares(const double* HWY_RESTRICT x, const double* HWY_RESTRICT rows,
                     const uint32_t* HWY_RESTRICT places, size_t dimensions,
                     const double* HWY_RESTRICT terms, double* HWY_RESTRICT out) {
  const double* row[kernels];
  double sum[kernels];
  for (size_t s = 0; s < kernels; ++s) {
    row[s] = rows + places[s] * 2 * dimensions;
    sum[s] = terms[places[s]];
  }
  for (size_t k = 0; k < dimensions; ++k)
    for (size_t s = 0; s < kernels; ++s) {
      const double z = (x[k] - row[s][k]) * row[s][dimensions + k];
      sum[s] -= z * z;
    }
  for (size_t s = 0; s < kernels; ++s) out[s] = sum[s];
}

size_t AddMatches(const int32_t* HWY_RESTRICT choices, int32_t choice, double gain,
                  double* HWY_RESTRICT terms, size_t count) {
  const Tag d;
  const hn::Rebind<int32_t, Tag> di;
  const size_t lanes = hn::Lanes(d);
  const auto wanted = hn::Set(d, static_cast<double>(choice)), plus = hn::Set(d, gain);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto given = hn::PromoteTo(d, hn::LoadU(di, choices + i));
    const auto added = hn::IfThenElseZero(hn::Eq(given, wanted), plus);
    hn::StoreU(hn::Add(hn::LoadU(d, terms + i), added), d, terms + i);
  }
  return i;
}

// e^x for -45 <= x <= 0: 2^k e^r with |r| <= ln(2) / 2, and e^r by its series, whose first term
// left out is below 5e-18.
template <class D, class V>
V Exponential(D d, V x) {
  const auto shift = hn::Set(d, 0x1.8p52);  // rounds to whole numbers
  const auto moved = hn::Add(hn::Mul(x, hn::Set(d, 1.44269504088896340736)), shift);
  const auto k = hn::Sub(moved, shift);
  // ln(2) in two parts, the first with so few bits that its products with k are exact.
  auto r = hn::Sub(x, hn::Mul(k, hn::Set(d, 0x1.62e42fefa0000p-1)));
  r = hn::Sub(r, hn::Mul(k, hn::Set(d, 0x1.cf79abc9e3b3ap-40)));
  auto sum = hn::Set(d, 1.0 / 6227020800);
  for (const double factorial : {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0,
                                 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0})
    sum = hn::Add(hn::Mul(sum, r), hn::Set(d, 1 / factorial));
  const hn::RebindToSigned<D> whole;
  return hn::BitCast(
      d, hn::Add(hn::BitCast(whole, sum), hn::ShiftLeft<52>(hn::BitCast(whole, moved))));
}

struct Sums {
  double high = 0, low = 0;
};

// Every number is cut into whole multiples of 2^-30 and of 2^-62: up to four million of each add up
// without rounding, so that the order makes no difference.
template <class D>
Sums AddUp(D d, const double* HWY_RESTRICT terms, const double* HWY_RESTRICT weights, size_t first,
           size_t last, double largest) {
  const auto most = hn::Set(d, largest), least = hn::Set(d, -negligible), none = hn::Zero(d);
  const auto coarse = hn::Set(d, 0x1.8p22), fine = hn::Set(d, 0x1.8p-10);
  auto high = none, low = none;
  for (size_t i = first; i < last; i += hn::Lanes(d)) {
    const auto x = hn::Sub(hn::LoadU(d, terms + i), most);
    const auto live = hn::Gt(x, least);
    if (hn::AllFalse(d, live)) continue;
    const auto power = Exponential(d, hn::Max(x, least));
    const auto value = hn::IfThenElseZero(live, hn::Mul(power, hn::LoadU(d, weights + i)));
    const auto upper = hn::Sub(hn::Add(value, coarse), coarse);
    high = hn::Add(high, upper);
    low = hn::Add(low, hn::Sub(hn::Add(hn::Sub(value, upper), fine), fine));
  }
  return {hn::GetLane(hn::SumOfLanes(d, high)), hn::GetLane(hn::SumOfLanes(d, low))};
}

double LogSumExp(const double* terms, const double* weights, size_t count) {
  const Tag d;
  const hn::CappedTag<double, 1> one;
  const size_t whole = count / hn::Lanes(d) * hn::Lanes(d);
  auto most = hn::Set(d, -std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < whole; i += hn::Lanes(d)) most = hn::Max(most, hn::LoadU(d, terms + i));
  double largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (size_t i = whole; i < count; ++i) largest = std::max(largest, terms[i]);
  if (std::isinf(largest)) return largest;
  const Sums body = AddUp(d, terms, weights, 0, whole, largest);
  const Sums rest = AddUp(one, terms, weights, whole, count, largest);
  return largest + std::log((body.high + rest.high) + (body.low + rest.low));
}

void LogSums(const Normals& normals, const double* x, const float* shares, size_t points,
             const double* terms, size_t stride, const double* weights, size_t count,
             const Contest* contest, double* out) {
  const size_t dimensions = normals.dimensions;
  if (dimensions == 0) {
    for (size_t p = 0; p < points; ++p) out[p] = LogSumExp(terms + p * stride, weights, count);
    return;
  }
  // What single precision may be wrong by where it matters: a kernel's term before its squares is
  // at most 4.8 a dimension above the prior's, so squares that are not negligible add up to less
  // than 5 n + 45, each root being off by less than 2e-5.
  const auto n = static_cast<float>(dimensions);
  const float slack = 0.5f + 1e-3f * n + 1e-6f * n * n;
  const float depth = static_cast<float>(negligible) + 2 * slack;
  const size_t whole = (count + padding - 1) / padding * padding;
  const size_t rows = stride == 0 ? 1 : together;
  std::vector<float> near_terms(rows * whole, -std::numeric_limits<float>::infinity()),
      near(together * whole), some_shares(together * dimensions);
  std::vector<uint32_t> begins(whole), places(whole + padding);
  std::vector<double> some_terms(count), some_weights(count);
  double best = -std::numeric_limits<double>::infinity();  // of the contest
  for (size_t first = 0; first < points; first += together) {
    const size_t now = std::min(together, points - first);
    std::copy_n(shares + first * dimensions, now * dimensions, some_shares.begin());
    const float* from[together];
    double zero[together];  // the prior's term, which all others are counted from
    for (size_t p = 0; p < together; ++p) {
      const double* own = terms + (first + std::min(p, now - 1)) * stride;
      float* row = near_terms.data() + (stride == 0 ? 0 : p * whole);
      zero[p] = own[0];
      from[p] = row;
      if (stride == 0 && (first > 0 || p > 0)) continue;
      for (size_t i = 0; i < count; ++i) row[i] = static_cast<float>(own[i] - zero[p]);
    }
    float largest[together];
    const size_t live = NearTerms(normals, some_shares.data(), from, whole, depth, near.data(),
                                  largest, begins.data());
    for (size_t p = 0; p < now; ++p) {
      if (contest) {
        // The sum is at least its largest term.
        const double least = zero[p] + (largest[p] - slack) + contest->log_least_weight;
        if (contest->wanted[first + p] - least < best) {
          out[first + p] = std::numeric_limits<double>::infinity();
          continue;
        }
      }
      const size_t found =
          Above(near.data() + p * whole, begins.data(), live, largest[p] - depth, places.data());
      const double* own = terms + (first + p) * stride;
      const double* at = x + (first + p) * dimensions;
      size_t s = 0;
      for (; s + 4 <= found; s += 4)
        SubtractSquares<4>(at, normals.rows, &places[s], dimensions, own, &some_terms[s]);
      for (; s < found; ++s)
        SubtractSquares<1>(at, normals.rows, &places[s], dimensions, own, &some_terms[s]);
      for (s = 0; s < found; ++s) some_weights[s] = weights[places[s]];
      out[first + p] = LogSumExp(some_terms.data(), some_weights.data(), found);
      if (contest) best = std::max(best, contest->wanted[first + p] - out[first + p]);
    }
  }
}

}  // namespace mase::search::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::search::kernels {
namespace {

HWY_EXPORT(LogSums);
HWY_EXPORT(AddMatches);
HWY_EXPORT(LogSumExp);

}  // namespace

void log_sums(const Normals& normals, const double* x, const float* shares, size_t points,
              const double* terms, size_t stride, const double* weights, size_t count,
              const Contest* contest, double* out) {
  HWY_DYNAMIC_DISPATCH(LogSums)
  (normals, x, shares, points, terms, stride, weights, count, contest, out);
}

void add_matches(const int32_t* choices, int32_t choice, double gain, double* terms, size_t count) {
  size_t i = HWY_DYNAMIC_DISPATCH(AddMatches)(choices, choice, gain, terms, count);
  for (; i < count; ++i)
    if (choices[i] == choice) terms[i] += gain;
}

double log_sum_exp(const double* terms, const double* weights, size_t count) {
  return HWY_DYNAMIC_DISPATCH(LogSumExp)(terms, weights, count);
}

}  // namespace mase::search::kernels
#endif
