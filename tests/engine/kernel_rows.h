// SPDX-License-Identifier: Apache-2.0
// What tests of kernels are given: rows whose padding is NaN, sizes around those of vectors,
// hostile values.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <string>

#include "mase/base/random.h"
#include "mase/base/tensor.h"

namespace mase::kernels {

inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float inf = std::numeric_limits<float>::infinity();
inline constexpr int64_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,   9,   10,
                                    11, 12, 13, 14, 15, 16, 17, 255, 256, 257};

// Rows of `stride` floats whose padding is NaN: nothing may depend on it.
struct Rows {
  int64_t rows, n, stride;
  std::shared_ptr<std::byte> memory;
  float* data;

  Rows(int64_t rows_, int64_t n_, uint64_t seed, bool hostile = false)
      : rows(rows_), n(n_), stride((n_ + 15) / 16 * 16 + 16) {
    memory = aligned_bytes(static_cast<size_t>(rows * stride + 16) * sizeof(float));
    data = reinterpret_cast<float*>(memory.get());
    std::fill_n(data, rows * stride, nan);
    Random random(seed, "kernels");
    const float odd[] = {0.0f,    -0.0f, inf,    -inf,  nan,   1e-42f,
                         -1e-40f, 3e38f, -3e38f, 88.0f, -104.f};
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t b = 0; b < n; ++b)
        data[r * stride + b] = hostile && random.below(3) == 0
                                   ? odd[random.below(std::size(odd))]
                                   : static_cast<float>(random.uniform(-2, 2));
  }
};

inline void expect_close(double got, double wanted, double tolerance, const std::string& where) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got)) << where << ": " << got;
  } else if (std::isinf(wanted)) {
    EXPECT_EQ(got, wanted) << where;
  } else {
    EXPECT_NEAR(got, wanted, tolerance * std::max(1.0, std::abs(wanted))) << where;
  }
}

inline void expect_rows(const Rows& got, const Rows& wanted, double tolerance,
                        const std::string& where) {
  for (int64_t r = 0; r < got.rows; ++r)
    for (int64_t b = 0; b < got.n; ++b)
      expect_close(got.data[r * got.stride + b], wanted.data[r * wanted.stride + b], tolerance,
                   where + fmt::format(" row {} sample {}", r, b));
}

}  // namespace mase::kernels
