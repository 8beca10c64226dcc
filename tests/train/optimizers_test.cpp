// SPDX-License-Identifier: Apache-2.0
// Every optimiser against PyTorch's formulas written out in double precision, and what the state
// of all of them must survive.
#include "mase/train/optimizer.h"

#include <cmath>

#include "mase/base/random.h"
#include "support/support.h"

namespace mase::optimizers_test {
namespace {

std::vector<float> draw(size_t count, uint64_t index) {
  Random random(1, "optimizers_test", index);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

// The values after `steps` updates with gradients draw(n, step).
std::vector<float> trained(const std::string& name, const Value& arguments, int steps, double rate,
                           size_t count = 37) {
  Optimizer optimizer(name, arguments, count);
  std::vector<float> values = draw(count, 0);
  for (int step = 1; step <= steps; ++step)
    optimizer.step(values, draw(count, static_cast<uint64_t>(step)), rate);
  return values;
}

void expect_near(const std::vector<float>& values, const std::vector<double>& wanted) {
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], wanted[i], 2e-6 * std::max(1.0, std::fabs(wanted[i]))) << i;
}

std::vector<double> adam_formula(int steps, double lr, double decay, bool decoupled,
                                 size_t count = 37) {
  const double b1 = 0.9, b2 = 0.999, eps = 1e-8;
  const std::vector<float> start = draw(count, 0);
  std::vector<double> p(start.begin(), start.end()), m(count), v(count);
  for (int t = 1; t <= steps; ++t) {
    const std::vector<float> gradient = draw(count, static_cast<uint64_t>(t));
    for (size_t i = 0; i < count; ++i) {
      double g = gradient[i];
      if (decoupled)
        p[i] *= 1 - lr * decay;
      else
        g += decay * p[i];
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      const double denominator = std::sqrt(v[i]) / std::sqrt(1 - std::pow(b2, t)) + eps;
      p[i] -= lr / (1 - std::pow(b1, t)) * m[i] / denominator;
    }
  }
  return p;
}

TEST(Optimizers, AdamFollowsTheFormula) {
  expect_near(trained("adam", Dict{{"weight_decay", 0.0}}, 20, 1e-2),
              adam_formula(20, 1e-2, 0, false));
  expect_near(trained("adam", Dict{{"weight_decay", 0.1}}, 20, 1e-2),
              adam_formula(20, 1e-2, 0.1, false));
}

TEST(Optimizers, AdamWShrinksTheWeights) {
  expect_near(trained("adamw", Dict{{"weight_decay", 0.1}}, 20, 1e-2),
              adam_formula(20, 1e-2, 0.1, true));
  // PyTorch's default
  expect_near(trained("adamw", Dict{}, 20, 1e-2), adam_formula(20, 1e-2, 0.01, true));
}

TEST(Optimizers, SgdWithMomentumNesterovAndDecay) {
  const double lr = 0.05, momentum = 0.9, decay = 5e-4;
  for (const bool nesterov : {false, true}) {
    const std::vector<float> start = draw(37, 0);
    std::vector<double> p(start.begin(), start.end()), b(37);
    for (int t = 1; t <= 20; ++t) {
      const std::vector<float> gradient = draw(37, static_cast<uint64_t>(t));
      for (size_t i = 0; i < p.size(); ++i) {
        double g = gradient[i] + decay * p[i];
        b[i] = t == 1 ? g : momentum * b[i] + g;
        g = nesterov ? g + momentum * b[i] : b[i];
        p[i] -= lr * g;
      }
    }
    expect_near(
        trained("sgd",
                Dict{{"momentum", momentum}, {"nesterov", nesterov}, {"weight_decay", decay}}, 20,
                lr),
        p);
  }
}

TEST(Optimizers, SgdHonoursWeightDecay) {
  EXPECT_NE(trained("sgd", Dict{{"weight_decay", 0.1}}, 3, 0.1),
            trained("sgd", Dict{{"weight_decay", 0.0}}, 3, 0.1));
}

TEST(Optimizers, EveryOneContinuesFromItsStateBitForBit) {
  for (const OptimizerRecord* record : Registry<OptimizerRecord>::instance().all()) {
    Dict arguments;
    if (record->arguments.find("momentum")) arguments.set("momentum", 0.9);
    const std::vector<float> whole = trained(record->name, arguments, 10, 1e-2);
    Optimizer first(record->name, arguments, 37);
    std::vector<float> values = draw(37, 0);
    for (uint64_t step = 1; step <= 4; ++step) first.step(values, draw(37, step), 1e-2);
    Optimizer second(record->name, arguments, 37);
    second.restore(first.state(), first.steps(), "test");
    for (uint64_t step = 5; step <= 10; ++step) second.step(values, draw(37, step), 1e-2);
    EXPECT_EQ(values, whole) << record->name;
  }
}

TEST(Optimizers, ZeroGradientsLeaveZerosAlone) {
  // Padding between parameters, and pruned weights, rely on it.
  for (const OptimizerRecord* record : Registry<OptimizerRecord>::instance().all()) {
    Optimizer optimizer(record->name, Dict{{"weight_decay", 0.1}}, 5);
    std::vector<float> values(5), gradients(5);
    for (int i = 0; i < 3; ++i) optimizer.step(values, gradients, 0.1);
    EXPECT_EQ(values, std::vector<float>(5)) << record->name;
  }
}

TEST(Optimizers, RefuseForeignStateAndBadArguments) {
  Optimizer adam("adam", Dict{}, 8);
  EXPECT_THROW(adam.restore({}, 1, "x.ckpt"), Error);
  EXPECT_THROW(adam.restore({{"exp_avg", Tensor({4})}, {"exp_avg_sq", Tensor({4})}}, 1, "x"),
               Error);
  EXPECT_THROW(Optimizer("adam", Dict{{"momentun", 1.0}}, 8), Error);
  EXPECT_THROW(Optimizer("adam", Dict{{"beta1", 1.5}}, 8), Error);
  EXPECT_THROW(Optimizer("adamm", Dict{}, 8), Error);
}

}  // namespace
}  // namespace mase::optimizers_test
