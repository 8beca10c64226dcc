// SPDX-License-Identifier: Apache-2.0
// The words of scalar expressions as vector sweeps against their plain meaning, on hostile values
// and with every instruction set.
#include <bit>
#include <cmath>
#include <vector>

#include "engine/instruction_sets.h"
#include "engine/kernel_rows.h"
#include "mase/engine/kernels/kernels.h"

namespace mase::kernels::elementwise_kernels_test {
namespace {

// Every function of one number over its whole range, borders of the fitted pieces included.
TEST(Kernels, FunctionsAreAccurateEverywhere) {
  std::vector<float> x;
  for (double v = -100; v <= 100; v += 1.0 / 256) x.push_back(static_cast<float>(v));
  for (int e = -40; e < 10; ++e)
    for (const double m : {1.0, 1.3, 1.7, 1.9999})
      for (const double sign : {-1.0, 1.0})
        x.push_back(static_cast<float>(sign * std::ldexp(m, e)));
  for (const float v : {0.625f, 1.0f, 4.0f, 87.0f})
    for (const float sign : {-1.0f, 1.0f}) {
      x.push_back(sign * v);
      x.push_back(sign * std::nextafter(v, 0.0f));
      x.push_back(sign * std::nextafter(v, 200.0f));
    }
  std::vector<float> fast(x.size()), plain(x.size());
  for (const ScalarOp op :
       {ScalarOp::exp, ScalarOp::tanh, ScalarOp::sigmoid, ScalarOp::erf, ScalarOp::softplus}) {
    apply(op, x.data(), nullptr, nullptr, fast.data(), static_cast<int64_t>(x.size()));
    reference::apply(op, x.data(), nullptr, nullptr, plain.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i)
      expect_close(fast[i], plain[i], 3e-7, fmt::format("op {} of {}", static_cast<int>(op), x[i]));
  }
}

// Angles of all sizes, multiples of pi / 2 among them; beyond some size floats are many turns
// apart.
TEST(Kernels, SineAndCosineAreAccurateForEveryAngle) {
  std::vector<float> x = {inf, -inf, nan, std::numeric_limits<float>::max()};
  for (double v = -100; v <= 100; v += 1.0 / 256) x.push_back(static_cast<float>(v));
  for (int quarter = -40000; quarter < 40000; quarter += 3)
    x.push_back(static_cast<float>(quarter * std::acos(0.0)));
  for (float v = 38990.0f; v < 39010.0f; v += 0.25f) x.push_back(v);
  for (int e = -149; e < 128; ++e)
    for (const double m : {1.0, 1.3, 1.7, 1.9999})
      for (const double sign : {-1.0, 1.0})
        x.push_back(static_cast<float>(sign * std::ldexp(m, e)));
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> fast(x.size()), plain(x.size());
  with_every_instruction_set([&] {
    for (const ScalarOp op : {ScalarOp::sin, ScalarOp::cos}) {
      apply(op, x.data(), nullptr, nullptr, fast.data(), n);
      reference::apply(op, x.data(), nullptr, nullptr, plain.data(), n);
      for (size_t i = 0; i < x.size(); ++i)
        expect_close(fast[i], plain[i], 2e-7,
                     fmt::format("op {} of {}", static_cast<int>(op), x[i]));
      // A value's result is its own: the same next to other values.
      for (size_t i = 0; i < x.size(); i += 97) {
        float alone;
        apply(op, &x[i], nullptr, nullptr, &alone, 1);
        EXPECT_TRUE(alone == fast[i] || std::isnan(alone)) << x[i];
      }
    }
  });
}

// To the bit, the sign of zero included.
TEST(Kernels, RoundingsAreExact) {
  std::vector<float> x = {0.0f, -0.0f, inf, -inf, 1e-42f, -1e-42f, 3e38f, -3e38f};
  for (float v = -4; v <= 4; v += 0.125f) x.push_back(v);
  for (const float border :
       {0.5f, 1.5f, 4194304.5f, 8388607.5f, 8388608.0f, 16777216.0f, 2147483648.0f})
    for (const float sign : {-1.0f, 1.0f})
      for (const float v : {border, std::nextafter(border, 0.0f), std::nextafter(border, inf)})
        x.push_back(sign * v);
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> fast(x.size()), plain(x.size());
  with_every_instruction_set([&] {
    for (const ScalarOp op : {ScalarOp::floor, ScalarOp::round}) {
      apply(op, x.data(), nullptr, nullptr, fast.data(), n);
      reference::apply(op, x.data(), nullptr, nullptr, plain.data(), n);
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(std::bit_cast<uint32_t>(fast[i]), std::bit_cast<uint32_t>(plain[i]))
            << static_cast<int>(op) << " of " << x[i] << ": " << fast[i];
    }
    const float zeros[] = {-0.0f, 0.0f};
    float sines[2];
    apply(ScalarOp::sin, zeros, nullptr, nullptr, sines, 2);
    EXPECT_TRUE(std::signbit(sines[0]) && !std::signbit(sines[1]));
  });
}

TEST(Kernels, ElementwiseMatchesReferenceOnHostileValues) {
  for (int op = static_cast<int>(ScalarOp::add); op <= static_cast<int>(ScalarOp::select); ++op)
    for (const int64_t n : sizes) {
      const Rows a(1, n, 1, true), b(1, n, 2, true), c(1, n, 3, true);
      std::vector<float> fast(static_cast<size_t>(n + 1), 7.0f), plain = fast;
      apply(static_cast<ScalarOp>(op), a.data, b.data, c.data, fast.data(), n);
      reference::apply(static_cast<ScalarOp>(op), a.data, b.data, c.data, plain.data(), n);
      EXPECT_EQ(fast.back(), 7.0f) << "wrote past the end";
      for (int64_t i = 0; i < n; ++i)
        expect_close(fast[static_cast<size_t>(i)], plain[static_cast<size_t>(i)], 1e-6,
                     fmt::format("op {} of {} {} {}", op, a.data[i], b.data[i], c.data[i]));
    }
}

}  // namespace
}  // namespace mase::kernels::elementwise_kernels_test
