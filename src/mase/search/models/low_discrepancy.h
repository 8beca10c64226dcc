// SPDX-License-Identifier: Apache-2.0
// Point sets that cover the unit cube more evenly than random ones: Sobol's sequence with the
// direction numbers of Joe and Kuo (2008), and Halton's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mase::search {

constexpr size_t sobol_dimensions = 128;  // at most

class Sobol {
 public:
  explicit Sobol(size_t dimensions);
  std::vector<double> point(uint64_t index) const;  // index below 2^30

 private:
  static constexpr int bits = 30;
  std::vector<uint32_t> directions_;  // [dimension][bit]
  size_t dimensions_;
};

std::vector<double> halton_point(uint64_t index, size_t dimensions);

}  // namespace mase::search
