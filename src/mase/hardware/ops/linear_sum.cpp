// SPDX-License-Identifier: Apache-2.0
// linear_sum: constant + factor[0] a[0] + factor[1] a[1] + ..., with the binary point said. It is
// what lowering writes for a neuron, a term for each weight; the optimiser makes additions of it,
// and folded layers take its factors as their weights, so no emitter sees it.
#include <cmath>

#include "mase/formats/few_digits.h"
#include "mase/hardware/ops/sum_of_multiples.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase::linear_sum_integer_op {
namespace {

using sum_of_multiples::first_factor;

std::string check(const IntegerContext& c) {
  if (c.ranges.empty() || c.node.numbers.size() != c.ranges.size() + first_factor)
    return "it has one factor for each operand";
  return c.number(0) < -1000 || c.number(0) > 1000 ? "its binary point is out of range" : "";
}

IntegerOpRecord record() {
  IntegerOpRecord record = sum_of_multiples::record();
  record.name = "linear_sum";
  record.summary = "a constant and a sum of multiples";
  record.check = check;
  // As additions of the factors' digits, before anything is shared.
  record.luts = [](const IntegerContext& c) {
    return static_cast<double>(adder_count(c.node)) * c.node.range.width();
  };
  record.delay = [](const IntegerContext& c) {
    return std::ceil(std::log2(1 + static_cast<double>(adder_count(c.node)))) *
           chain_delay(c.node.range.width());
  };
  return record;
}

const Register<IntegerOpRecord> registered{record()};

}  // namespace
}  // namespace mase::linear_sum_integer_op
