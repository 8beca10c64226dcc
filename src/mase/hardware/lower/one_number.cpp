// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/lower/one_number.h"

#include <algorithm>

#include "mase/hardware/lower/lowering_probe.h"

namespace mase::one_number {
namespace {

constexpr Slot operand = 0;

// Knows maps of the operand and of their results, and nothing else.
class MapsOnly final : public LoweringProbe {
 public:
  Shape shape(Slot slot) const override { return slot < 0 ? unknown() : Shape{1, 1}; }
  Slot map(const Expr&, const std::vector<Slot>& operands) override {
    return std::all_of(operands.begin(), operands.end(), [](Slot slot) { return slot >= 0; })
               ? ++last_
               : nothing;
  }

 private:
  Slot last_ = operand;
};

}  // namespace
}  // namespace mase::one_number

namespace mase {

bool is_function_of_one_number(const OpRecord& op, const Value& attributes) {
  if (!op.lower || op.min_inputs > 1) return false;
  one_number::MapsOnly maps;
  try {
    return op.lower(maps, attributes, {one_number::operand}) > one_number::operand;
  } catch (const Error&) {  // it is one of whole images or sequences
    return false;
  }
}

}  // namespace mase
