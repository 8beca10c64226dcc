// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/carry/carry_plan.h"

#include <algorithm>
#include <bit>

#include "mase/base/text.h"

namespace mase {
namespace {

uint64_t low_mask(int width) { return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

// One way: carries at `first` and `second` or none (-1), the rest as ones.
std::optional<CarryPlan> plan_with(std::span<const CarryOperand> operands, uint64_t rest, int width,
                                   int first, int second) {
  if (first >= 0) rest -= uint64_t{1} << first;
  if (second >= 0) rest -= uint64_t{1} << second;
  rest &= low_mask(width);
  CarryPlan plan;
  plan.bits.resize(static_cast<size_t>(width));
  plan.carry_first = first >= 0;
  plan.carry_second = second >= 0;
  plan.first = -1;
  plan.second = -1;
  bool left_over = false;  // by the bit below, and not known to be none
  for (int i = 0; i < width; ++i) {
    CarryBit& bit = plan.bits[static_cast<size_t>(i)];
    bit.one = (rest >> i & 1) != 0;
    int live = 0, turned = 0;
    for (const CarryOperand& operand : operands)
      if (operand.has(i)) {
        ++live;
        turned += operand.inverts(i);
      }
    const int present = live + bit.one;
    if (present > 3) return {};
    if (plan.first < 0) {
      const bool begins = present > 1 || turned > 0 || i == first || i == second;
      if (!begins) continue;
      if (first >= 0 && i != first) return {};
      plan.first = i;
    }
    const bool carries = i == second;
    // Two bits that both enter turned over would need a table for the one that is handed on.
    const bool plain = !left_over && !carries && present <= 2 && turned <= 1;
    if (plain) {
      bit.kind = CarryBit::Kind::plain;
      const bool wire = live == 0 || (live == 1 && (turned == 1) == bit.one);
      bit.table = !wire;
    } else {
      if (second >= 0 && plan.second < 0 && !carries) return {};
      if (plan.second < 0) plan.second = i;
      bit.kind = CarryBit::Kind::compressed;
      bit.keeps = present >= 2;
      bit.table = true;
      left_over = present >= 2;
      plan.tables += 1;
      continue;
    }
    left_over = false;
    plan.tables += bit.table;
  }
  if (plan.first < 0) {
    if (first >= 0 || second >= 0) return {};
    plan.first = width;
  }
  if (first >= 0 && plan.first != first) return {};
  if (second >= 0 && plan.second != second) return {};
  if (plan.second < 0) plan.second = width;
  return plan;
}

}  // namespace

CarryOperand::CarryOperand(const IntegerRange& range, int64_t factor)
    : shift(std::countr_zero(static_cast<uint64_t>(factor))),
      width(range.low == range.high && range.low == 0 ? 0 : range.width()),
      is_signed(range.is_signed()),
      negative(factor < 0) {}

int64_t CarryOperand::offset() const {
  if (width == 0) return 0;
  const int64_t half = int64_t{1} << (width - 1);
  if (is_signed) return negative ? half - 1 : half;
  return negative ? 2 * (half - 1) + 1 : 0;
}

std::optional<CarryPlan> carry_plan(std::span<const CarryOperand> operands, int64_t constant,
                                    int width) {
  uint64_t rest = static_cast<uint64_t>(constant);
  for (const CarryOperand& operand : operands)
    rest -= static_cast<uint64_t>(operand.offset()) << operand.shift;
  rest &= low_mask(width);
  const int lowest = rest == 0 ? -1 : std::countr_zero(rest);
  const uint64_t more = rest & (rest - 1);
  const int next = more == 0 ? -1 : std::countr_zero(more);
  std::optional<CarryPlan> best;
  const auto consider = [&](int first, int second) {
    std::optional<CarryPlan> plan = plan_with(operands, rest, width, first, second);
    if (plan && (!best || plan->tables < best->tables)) best = std::move(plan);
  };
  consider(-1, -1);
  if (lowest >= 0) {
    consider(lowest, -1);
    consider(-1, lowest);
  }
  if (next >= 0) consider(lowest, next);
  // Twice at one place is the next one.
  if (lowest > 0) consider(lowest - 1, lowest - 1);
  return best;
}

std::vector<CarryOperand> carry_operands(const IntegerContext& context) {
  std::vector<CarryOperand> operands;
  for (size_t k = 0; k < context.ranges.size(); ++k)
    operands.emplace_back(context.ranges[k], context.number(k + 2));
  return operands;
}

CarryPlan carry_plan(const IntegerContext& context) {
  std::optional<CarryPlan> plan = carry_plan(carry_operands(context), context.number(1),
                                             std::max(1, context.node.range.width()));
  MASE_CHECK(plan, "the constant of a chain has no place");
  return std::move(*plan);
}

}  // namespace mase
