// SPDX-License-Identifier: Apache-2.0
// chain: constant + factor[0] a[0] + factor[1] a[1] (+ factor[2] a[2]), factors powers of two with
// a sign, on one explicit carry chain (carry_plan.h). What synthesis makes of `+` it decides by
// itself: it extends signs, merges sums, and knows no sum of three.
#include <algorithm>
#include <bit>

#include "mase/hardware/carry/carry_cells.h"
#include "mase/hardware/carry/carry_plan.h"
#include "mase/hardware/cost/bit_times.h"
#include "mase/hardware/ops/sum_of_multiples.h"
#include "mase/hardware/optimize/cmvm.h"

namespace mase::chain_integer_op {
namespace {

using sum_of_multiples::first_factor;

std::string check(const IntegerContext& c) {
  const size_t count = c.ranges.size();
  if (count < 2 || count > most_chain_operands) return "it has two or three operands";
  if (c.node.numbers.size() != count + first_factor) return "it has one factor for each operand";
  if (c.number(0) < -1000 || c.number(0) > 1000) return "its binary point is out of range";
  for (size_t k = first_factor; k < c.node.numbers.size(); ++k) {
    const int64_t factor = c.number(k);
    if (factor < -(int64_t{1} << integer_limit_bits) || factor > int64_t{1} << integer_limit_bits ||
        !std::has_single_bit(static_cast<uint64_t>(factor < 0 ? -factor : factor)))
      return fmt::format("a factor of {} is no power of two", factor);
  }
  if (c.node.range.width() > 0 &&
      !carry_plan(carry_operands(c), c.number(1), std::max(1, c.node.range.width())))
    return "its constant has no place on the chain";
  return "";
}

BitTimes times(const IntegerContext& c, const std::vector<BitTimes>& operands) {
  const CarryPlan plan = carry_plan(c);
  const std::vector<CarryOperand> entering = carry_operands(c);
  BitTimes below, inputs;  // of the chain's tables, less one
  double left_over = 0;    // of the bit below
  for (size_t i = 0; i < plan.bits.size(); ++i) {
    double latest = 0;
    for (size_t k = 0; k < entering.size(); ++k)
      if (entering[k].has(static_cast<int>(i)))
        latest = std::max(latest, operands[k][i - static_cast<size_t>(entering[k].shift)]);
    if (static_cast<int>(i) < plan.first) {
      below.push_back(latest);
      continue;
    }
    const CarryBit& bit = plan.bits[i];
    if (bit.kind == CarryBit::Kind::compressed)
      inputs.push_back(std::max(latest, left_over));
    else
      inputs.push_back(bit.table ? latest : latest - 1);
    left_over = bit.keeps ? latest + 1 : 0;
  }
  const BitTimes sum = chain_times(inputs, inputs);
  below.insert(below.end(), sum.begin(), sum.end());
  return below;
}

IntegerOpRecord record() {
  IntegerOpRecord record = sum_of_multiples::record();
  record.name = "chain";
  record.summary = "a constant and two or three multiples on one carry chain";
  record.check = check;
  record.luts = [](const IntegerContext& c) { return carry_plan(c).tables; };
  record.delay = [](const IntegerContext& c) {
    const CarryPlan plan = carry_plan(c);
    const int width = static_cast<int>(plan.bits.size());
    return chain_delay(width - plan.first) + (plan.second < width ? 1 : 0);
  };
  record.times = times;
  record.logic = [](const IntegerContext& c, BitLogic& logic, const auto& in) {
    LogicWord sum = logic.constant(c.number(1));
    for (size_t k = 0; k < in.size(); ++k) {
      const int64_t factor = c.number(k + first_factor);
      LogicWord term = factor < 0 ? logic.negated(in[k]) : in[k];
      const size_t shift = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(factor)));
      term.bits.insert(term.bits.begin(), shift, DecisionDiagram::never);
      sum = logic.sum(sum, term);
    }
    return sum;
  };
  record.cells = carry_cells_text;
  return record;
}

const Register<IntegerOpRecord> registered{record()};

}  // namespace
}  // namespace mase::chain_integer_op
