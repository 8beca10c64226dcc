// SPDX-License-Identifier: Apache-2.0
// Shrinking: digits leave one by one, the loss stays within its limit, and what is written is what
// was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "hardware/variants.h"
#include "mase/formats/few_digits.h"
#include "mase/hardware/lower/lower_linear.h"
#include "mase/run/experiment.h"
#include "mase/run/hardware/shrink.h"
#include "support/support.h"

namespace mase::test::shrink_test {
namespace {

RC_GTEST_PROP(digits, the_lowest_one_leaves, (int32_t number)) {
  const int before = signed_digit_count(number);
  const int64_t less = without_lowest_digit(number);
  RC_ASSERT(signed_digit_count(less) == std::max(0, before - 1));
  // The lowest digit is the smallest change.
  const int64_t lowest = number & -static_cast<int64_t>(number);
  RC_ASSERT(std::abs(less - number) == lowest);
}

RC_GTEST_PROP(digits, few_of_them_stay_within_limits, (int16_t number)) {
  const int digits = *rc::gen::inRange(0, 8);
  const int64_t low = *rc::gen::inRange<int64_t>(-40000, 1),
                high = *rc::gen::inRange<int64_t>(0, 40000);
  const int64_t near = with_few_digits(number, digits, low, high);
  RC_ASSERT(near >= low && near <= high);
  RC_ASSERT(signed_digit_count(near) <= digits);
  const int64_t inside = std::clamp<int64_t>(number, low, high);
  if (signed_digit_count(inside) <= digits) RC_ASSERT(near == inside);
  // A digit more is never worse.
  RC_ASSERT(std::abs(with_few_digits(number, digits + 1, low, high) - inside) <=
            std::abs(near - inside));
}

ShrinkSpec tiny() {
  ShrinkSpec spec;
  spec.network.network = {.model = "jsc-tiny", .seed = 3};
  spec.network.data = {.name = "jsc-sim", .options = {.arguments = Dict{{"rows", 3000}}}};
  const Value config = parse_toml(
      "[passes.fuse_batch_norm]\n[passes.quantize]\nby = \"type\"\n"
      "[passes.quantize.default.config]\nname = \"NA\"\n[passes.quantize.linear.config]\n"
      "name = \"integer\"\ndata_in_width = 8\ndata_in_frac_width = 4\nweight_width = 8\n"
      "weight_frac_width = 6\nbias_width = 8\nbias_frac_width = 6\n",
      "config");
  spec.network.passes = {pass_calls(config["passes"], "passes"), ""};
  return spec;
}

TEST(shrink, digits_leave_and_the_loss_stays) {
  ShrinkSpec spec = tiny();
  spec.max_loss = 0.02;
  const ShrinkResult result = shrink(spec);
  ASSERT_GE(result.steps.size(), 2u);
  const ShrinkStep &first = result.steps.front(), &last = result.steps.back();
  EXPECT_LT(last.digits, first.digits);
  EXPECT_LT(last.luts, first.luts);
  EXPECT_LE(last.train_loss, first.train_loss * 1.02);
  // The graph that is given has the digits that were counted.
  const Module& layer = result.graph.modules().at("seq_blocks.2");
  const Tensor& weight = *layer.find("weight");
  EXPECT_TRUE(quantize(*layer.quantization.operands.at("weight"), weight).same_bits(weight));
  int64_t digits = 0;
  for (int64_t i = 0; i < weight.numel(); ++i)
    digits += signed_digit_count(dyadic(weight.item(i), "test").mantissa);
  EXPECT_EQ(digits, last.digits);
}

TEST(shrink, stops_at_the_budget_and_says_when_it_cannot) {
  ShrinkSpec spec = tiny();
  spec.max_loss = 10;
  const double luts = shrink(spec).steps.front().luts;
  spec.luts = luts * 0.8;
  const ShrinkResult enough = shrink(spec);
  EXPECT_TRUE(enough.reached);
  EXPECT_LE(enough.steps.back().luts, spec.luts);
  spec.max_loss = -0.5;  // half the loss: no digit gives that
  spec.luts = 1;
  EXPECT_FALSE(shrink(spec).reached);
}

// Training between rounds gives loss back that the next round spends; digits never come back.
TEST(shrink, retraining_goes_further_at_the_same_loss) {
  ShrinkSpec spec = tiny();
  // Weights that mean something.
  Experiment experiment(
      {.network = spec.network.network, .data = spec.network.data, .batch_size = 64});
  experiment.prepare();
  TrainSpec training;
  training.options.learning_rate = 1e-2;
  training.options.max_epochs = 10;
  experiment.train(training);
  spec.network.network = {.load = temporary_folder() + "/trained.mz"};
  save_mz(spec.network.network.load, experiment.graph(), experiment.file_contents());
  spec.retrain_epochs = 0;
  const ShrinkResult once = shrink(spec);
  spec.retrain_epochs = 3;
  spec.rounds = 3;
  const ShrinkResult often = shrink(spec);
  const double limit = often.steps.front().train_loss * (1 + spec.max_loss);
  EXPECT_LT(often.steps.back().digits, once.steps.back().digits);
  for (size_t k = 1; k < often.steps.size(); ++k) {
    EXPECT_LE(often.steps[k].digits, often.steps[k - 1].digits) << often.steps[k].what;
    EXPECT_LE(often.steps[k].train_loss, limit + 1e-9);
  }
  // The front's networks are those that were measured.
  for (size_t k = 1; k < often.front.size(); ++k) {
    EXPECT_GT(often.front[k].step.luts, often.front[k - 1].step.luts);
    EXPECT_LT(often.front[k].step.train_loss, often.front[k - 1].step.train_loss);
  }
  HardwareNetwork network;
  network.network = often.graph;
  network.lowered = lower(often.graph);
  EXPECT_TRUE(compare_with_engine(network, {.rows = 200, .seed = 1}).engine);
}

TEST(shrink, needs_data) {
  ShrinkSpec spec = tiny();
  spec.network.data = {};
  EXPECT_THROW(shrink(spec), Error);
}

}  // namespace
}  // namespace mase::test::shrink_test
