// SPDX-License-Identifier: Apache-2.0
// A slope of few bits is exact: sums of shifts below zero. Others become tables.
#include <cstdlib>

#include "mase/hardware/lower/integer_lowering.h"
#include "mase/hardware/lower/lower_linear.h"

namespace mase::leaky_relu_lowering {
namespace {

std::optional<std::vector<IntegerId>> lower(const IntegerCall& call) {
  const Dyadic slope = dyadic(call.call.attributes["negative_slope"].as_double(), call.node.name);
  if (std::abs(slope.mantissa) >= 1 << 8 || slope.frac < 0 || slope.frac > 16) return {};
  IntegerBuilder& builder = call.builder;
  return call.each([&](IntegerId x) {
    const int frac = builder.at(x).frac;
    const IntegerId below = builder.scale(x, slope.mantissa, frac + slope.frac);
    const IntegerId negative = builder.compare(x, builder.constant(0, frac));
    return builder.select(negative, below, builder.shift(x, slope.frac));
  });
}

const Register<IntegerLowering> registered{{
    .name = "leaky_relu",
    .summary = "x, below zero times a slope of at most 8 bits",
    .lower = lower,
}};

}  // namespace
}  // namespace mase::leaky_relu_lowering
