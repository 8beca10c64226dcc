// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "mase/formats/format.h"
#include "support/support.h"

namespace mase::integer_test {
namespace {

float round_one(const Quantizer& q, float x) {
  float y = 0;
  q.quantize(&x, &y, {1});
  return y;
}

Value fixed(int width, int frac, bool is_signed = true, const char* rounding = "nearest_even") {
  return Dict{
      {"width", width}, {"frac_width", frac}, {"is_signed", is_signed}, {"rounding", rounding}};
}

TEST(Integer, PublishedVectors) {
  const auto q = make_quantizer("integer", fixed(8, 4));
  const float inf = std::numeric_limits<float>::infinity();
  const std::pair<float, float> cases[] = {
      {0.03125f, 0},        {0.09375f, 0.125f}, {0.15625f, 0.125f},
      {-0.09375f, -0.125f}, {7.96f, 7.9375f},   {8, 7.9375f},
      {-8.04f, -8},         {inf, 7.9375f},     {-inf, -8}};
  for (const auto& [x, y] : cases) EXPECT_EQ(round_one(*q, x), y) << x;
  EXPECT_TRUE(std::isnan(round_one(*q, std::nanf(""))));
  EXPECT_TRUE(std::signbit(round_one(*q, -0.0f)));
  const auto coarse = make_quantizer("fixed", fixed(4, -1));
  const std::pair<float, float> more[] = {{1, 0},   {3, 4},   {5, 4},    {13, 12},
                                          {15, 14}, {17, 14}, {-17, -16}};
  for (const auto& [x, y] : more) EXPECT_EQ(round_one(*coarse, x), y) << x;
  const auto down = make_quantizer("integer_floor", Dict{{"width", 8}, {"frac_width", 4}});
  const std::pair<float, float> floors[] = {{0.03f, 0},        {0.07f, 0.0625f}, {-0.03f, -0.0625f},
                                            {-0.07f, -0.125f}, {7.99f, 7.9375f}, {-9, -8}};
  for (const auto& [x, y] : floors) EXPECT_EQ(round_one(*down, x), y) << x;
}

TEST(Integer, RoundingRules) {
  const auto at = [](const char* rounding, float x) {
    return round_one(*make_quantizer("integer", fixed(8, 0, true, rounding)), x);
  };
  EXPECT_EQ(at("half_away", 0.5f), 1);
  EXPECT_EQ(at("half_away", -2.5f), -3);
  EXPECT_EQ(at("half_away", 0.49999997f), 0);
  EXPECT_EQ(at("toward_zero", -2.9f), -2);
  EXPECT_EQ(at("floor", -2.1f), -3);
  EXPECT_EQ(at("nearest_even", 2.5f), 2);
}

TEST(Integer, StochasticRoundingIsUnbiasedAndRepeatable) {
  const auto q = make_quantizer("integer", fixed(8, 0, true, "stochastic"));
  const std::vector<float> x(100000, 2.25f);
  std::vector<float> a(x.size()), b(x.size());
  q->quantize(x.data(), a.data(), {100000});
  q->quantize(x.data(), b.data(), {100000});
  EXPECT_EQ(a, b);
  double sum = 0;
  for (const float v : a) sum += v;
  EXPECT_NEAR(sum / 100000, 2.25, 0.006);
  q->quantize(x.data(), b.data(), {100000}, 1);
  EXPECT_NE(a, b);
}

TEST(Integer, WidthFromOneTo64) {
  for (int width = 1; width <= 64; ++width)
    for (const bool is_signed : {true, false}) {
      const auto q = make_quantizer("integer", fixed(width, 0, is_signed));
      EXPECT_LE(*q->largest, std::ldexp(1.0, is_signed ? width - 1 : width) - (width < 50));
      EXPECT_EQ(round_one(*q, 1e30f), static_cast<float>(*q->largest));
      EXPECT_EQ(round_one(*q, -1e30f), static_cast<float>(*q->lowest));
    }
}

}  // namespace
}  // namespace mase::integer_test
