// SPDX-License-Identifier: Apache-2.0
// A named curve, and thinning it for display without losing an extreme.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mase {

struct Curve {
  std::string name;
  std::vector<double> x, y;  // equally long; x ascending; a NaN in y interrupts the line
};

// Which points to keep so that at most `most` remain: of every stretch of neighbours the first,
// the last, the lowest and the highest (and one that is not finite, so that a gap or a divergence
// stays visible). Ascending; all of them where the curve is short enough.
std::vector<size_t> thin_indices(std::span<const double> y, size_t most);

Curve thin(const Curve& curve, size_t most);

}  // namespace mase
