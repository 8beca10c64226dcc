// SPDX-License-Identifier: Apache-2.0
#include "mase/search/kernels/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

// All dimensions of `points` rows at once: means and deviations are loaded once for all of them.
// Sums only fall, so once all of them are below their row's floor, the rest of the dimensions is
// left out. False: that was so.
template <size_t points, class D>
bool SubtractAt(D d, const Normals& normals, const double* HWY_RESTRICT x,
                double* HWY_RESTRICT terms, size_t stride, size_t i, const double* floors) {
  const size_t dimensions = normals.dimensions;
  const auto next = [&](auto sum, auto mu, auto inverse, size_t k, size_t p) HWY_ATTR {
    const auto z = hn::Mul(hn::Sub(hn::Set(d, x[p * dimensions + k]), mu), inverse);
    return hn::Sub(sum, hn::Mul(z, z));
  };
  auto a = hn::LoadU(d, terms + i), b = a, c = a, e = a;
  if constexpr (points > 1) {
    b = hn::LoadU(d, terms + stride + i);
    c = hn::LoadU(d, terms + 2 * stride + i);
    e = hn::LoadU(d, terms + 3 * stride + i);
  }
  const auto any_left = [&]() HWY_ATTR {
    auto left = hn::Gt(a, hn::Set(d, floors[0]));
    if constexpr (points > 1) {
      left = hn::Or(left, hn::Gt(b, hn::Set(d, floors[1])));
      left =
          hn::Or(left, hn::Or(hn::Gt(c, hn::Set(d, floors[2])), hn::Gt(e, hn::Set(d, floors[3]))));
    }
    return !hn::AllFalse(d, left);
  };
  constexpr size_t between = 2;  // dimensions from look to look
  bool left = true;
  for (size_t k = 0; k < dimensions && left;) {
    for (const size_t end = std::min(k + between, dimensions); k < end; ++k) {
      const auto mu = hn::LoadU(d, normals.mu[k] + i),
                 inverse = hn::LoadU(d, normals.inverse[k] + i);
      a = next(a, mu, inverse, k, 0);
      if constexpr (points > 1) {
        b = next(b, mu, inverse, k, 1);
        c = next(c, mu, inverse, k, 2);
        e = next(e, mu, inverse, k, 3);
      }
    }
    left = any_left();
  }
  hn::StoreU(a, d, terms + i);
  if constexpr (points > 1) {
    hn::StoreU(b, d, terms + stride + i);
    hn::StoreU(c, d, terms + 2 * stride + i);
    hn::StoreU(e, d, terms + 3 * stride + i);
  }
  return left;
}

template <size_t points>
void SubtractRows(const Normals& normals, const double* x, double* terms, size_t stride,
                  size_t count) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  double floors[points];
  std::fill(floors, floors + points, -std::numeric_limits<double>::infinity());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    if (!SubtractAt<points>(d, normals, x, terms, stride, i, floors)) continue;
    for (size_t p = 0; p < points; ++p)
      floors[p] =
          std::max(floors[p], hn::GetLane(hn::MaxOfLanes(d, hn::LoadU(d, terms + p * stride + i))) -
                                  negligible);
  }
  const hn::CappedTag<double, 1> one;
  for (; i < count; ++i) SubtractAt<points>(one, normals, x, terms, stride, i, floors);
}

void SubtractSquares(const Normals& normals, const double* x, size_t points, double* terms,
                     size_t stride, size_t count) {
  size_t p = 0;
  for (; p + 4 <= points; p += 4)
    SubtractRows<4>(normals, x + p * normals.dimensions, terms + p * stride, stride, count);
  for (; p < points; ++p)
    SubtractRows<1>(normals, x + p * normals.dimensions, terms + p * stride, stride, count);
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

}  // namespace mase::search::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::search::kernels {
namespace {

HWY_EXPORT(SubtractSquares);
HWY_EXPORT(AddMatches);
HWY_EXPORT(LogSumExp);

}  // namespace

void subtract_squares(const Normals& normals, const double* x, size_t points, double* terms,
                      size_t stride, size_t count) {
  HWY_DYNAMIC_DISPATCH(SubtractSquares)(normals, x, points, terms, stride, count);
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
