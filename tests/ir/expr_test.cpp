// SPDX-License-Identifier: Apache-2.0
// Expressions: derivatives of random expressions against differences, and what simplifies.
#include "mase/ir/expr.h"

#include <rapidcheck.h>

#include <cmath>

#include "mase/base/random.h"
#include "support/support.h"

namespace mase::expr_test {
namespace {

// Smooth functions only, kept away from poles, so that differences mean something.
Expr random_expr(Random& random, int depth) {
  if (depth == 0)
    return random.below(3) == 0 ? Expr(random.uniform(-2, 2))
                                : Expr::operand(static_cast<int>(random.below(2)));
  const Expr a = random_expr(random, depth - 1), b = random_expr(random, depth - 1);
  switch (random.below(11)) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b;
    case 3:
      return a / (2.0 + tanh(b));
    case 4:
      return tanh(a);
    case 5:
      return sigmoid(a);
    case 6:
      return softplus(a);
    case 7:
      return erf(a);
    case 8:
      return sin(a);
    case 9:
      return cos(a);
    default:
      return log(1.5 + a * a) + sqrt(1.0 + b * b) + exp(tanh(a)) - select(less(a, b), a, a);
  }
}

TEST(Expr, DerivativesMatchDifferences) {
  const bool holds = rc::check("derivative", [](uint64_t seed) {
    Random random(seed, "expr");
    const Expr expr = random_expr(random, 3);
    std::vector<double> at = {random.uniform(-2, 2), random.uniform(-2, 2)};
    for (int k = 0; k < 2; ++k) {
      const double slope = expr.derivative(k).evaluate(at);
      std::vector<double> above = at, below = at;
      above[static_cast<size_t>(k)] += 1e-6;
      below[static_cast<size_t>(k)] -= 1e-6;
      const double difference = (expr.evaluate(above) - expr.evaluate(below)) / 2e-6;
      RC_ASSERT(std::abs(slope - difference) <= 1e-5 + 1e-4 * std::abs(difference));
    }
  });
  EXPECT_TRUE(holds);
}

TEST(Expr, Simplifies) {
  const Expr x = Expr::operand(0);
  EXPECT_EQ((x + 0.0).size(), 1);
  EXPECT_EQ((x * 1.0).size(), 1);
  EXPECT_TRUE((x * 0.0).is_constant(0));
  EXPECT_TRUE((Expr(2.0) * 3.0).is_constant(6));
  EXPECT_TRUE(max(x, 0.0).derivative(1).is_constant(0));
}

TEST(Expr, ReluHasNoSlopeAtZero) {
  const Expr relu = max(Expr::operand(0), 0.0);
  EXPECT_EQ(relu.derivative(0).evaluate({0.0}), 0);
  EXPECT_EQ(relu.derivative(0).evaluate({1e-300}), 1);
  EXPECT_TRUE(std::isnan(relu.evaluate({NAN})));
}

TEST(Expr, RoundingsHaveNoSlope) {
  const Expr x = Expr::operand(0);
  for (const Expr& e : {floor(x * 3.0), round(x), -floor(-x), less(0.0, x) - less(x, 0.0)}) {
    const Expr slope = e.derivative(0);
    EXPECT_TRUE(slope.is_constant(0));
    EXPECT_FALSE(std::signbit(slope.evaluate({0.5})));
  }
  EXPECT_EQ(round(x).evaluate({2.5}), 2);
  EXPECT_EQ(round(x).evaluate({-1.5}), -2);
  EXPECT_EQ(floor(x).evaluate({-0.25}), -1);
}

TEST(Expr, SubstitutionComposes) {
  const Expr x = Expr::operand(0);
  const Expr squared_tanh = (x * x).substitute({tanh(x)});
  EXPECT_DOUBLE_EQ(squared_tanh.evaluate({0.3}), std::tanh(0.3) * std::tanh(0.3));
}

}  // namespace
}  // namespace mase::expr_test
