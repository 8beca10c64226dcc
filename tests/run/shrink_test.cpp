// SPDX-License-Identifier: Apache-2.0
// Shrinking: digits leave one by one, the loss stays within its limit, and what is written is what
// was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "hardware/variants.h"
#include "mase/hardware/lower_linear.h"
#include "mase/run/shrink.h"
#include "support/support.h"

namespace mase::test {
namespace {

RC_GTEST_PROP(digits, the_lowest_one_leaves, (int32_t number)) {
  const int before = signed_digit_count(number);
  const int64_t less = without_lowest_digit(number);
  RC_ASSERT(signed_digit_count(less) == std::max(0, before - 1));
  // The lowest digit is the smallest change.
  const int64_t lowest = number & -static_cast<int64_t>(number);
  RC_ASSERT(std::abs(less - number) == lowest);
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

TEST(shrink, needs_data) {
  ShrinkSpec spec = tiny();
  spec.network.data = {};
  EXPECT_THROW(shrink(spec), Error);
}

}  // namespace
}  // namespace mase::test
