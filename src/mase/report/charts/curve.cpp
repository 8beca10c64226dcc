// SPDX-License-Identifier: Apache-2.0
#include "mase/report/charts/curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "mase/base/error.h"

namespace mase {

std::vector<size_t> thin_indices(std::span<const double> y, size_t most) {
  constexpr size_t kept_of_each = 5;
  std::vector<size_t> kept;
  if (y.size() <= std::max(most, kept_of_each)) {
    kept.resize(y.size());
    std::iota(kept.begin(), kept.end(), size_t{0});
    return kept;
  }
  const size_t stretches = std::max<size_t>(1, most / kept_of_each);
  for (size_t stretch = 0; stretch < stretches; ++stretch) {
    const size_t begin = y.size() * stretch / stretches;
    const size_t end = y.size() * (stretch + 1) / stretches;
    size_t lowest = end, highest = end, odd = end;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(y[i])) {
        if (odd == end) odd = i;
        continue;
      }
      if (lowest == end || y[i] < y[lowest]) lowest = i;
      if (highest == end || y[i] > y[highest]) highest = i;
    }
    std::array<size_t, kept_of_each> chosen = {begin, lowest, highest, odd, end - 1};
    std::sort(chosen.begin(), chosen.end());
    for (size_t i : chosen)
      if (i < end && (kept.empty() || kept.back() < i)) kept.push_back(i);
  }
  return kept;
}

Curve thin(const Curve& curve, size_t most) {
  MASE_CHECK(curve.x.size() == curve.y.size(), "curve '{}': {} and {} points", curve.name,
             curve.x.size(), curve.y.size());
  Curve result{curve.name, {}, {}};
  for (size_t i : thin_indices(curve.y, most)) {
    result.x.push_back(curve.x[i]);
    result.y.push_back(curve.y[i]);
  }
  return result;
}

}  // namespace mase
