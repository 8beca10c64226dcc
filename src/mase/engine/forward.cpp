// SPDX-License-Identifier: Apache-2.0
// Primitives => forward steps, each by the first of its variants that applies. A step names what it
// reads and writes; once every tensor has its place, `bind` turns it into a closure over plain
// pointers.
#include "mase/engine/primitive.h"
#include "mase/engine/primitives/loss.h"

namespace mase::engine {

Step first_step(Plan& plan, Primitive& primitive) {
  MASE_CHECK(!primitive.accumulate || (primitive.record->accumulates && primitive.bias < 0 &&
                                       primitive.epilogue.empty()),
             "'{}' cannot add to a tensor", primitive.record->name);
  for (const Variant& variant : variants_of(*primitive.record))
    if (std::optional<Step> step = variant.forward(plan, primitive)) return std::move(*step);
  MASE_CHECK(false, "'{}' cannot be computed", primitive.record->name);
  return {};
}

void emit_forward(Plan& plan) {
  for (size_t i = 0; i < plan.primitives.size(); ++i) {
    if (plan.primitives[i].removed) continue;
    Step step = first_step(plan, plan.primitives[i]);
    const Primitive& p = plan.primitives[i];
    step.node = p.node;
    const bool once = !plan.options.training && plan.at(p.out).constant;
    (once ? plan.prepare : p.of_loss ? plan.losses : plan.forward).push_back(std::move(step));
  }
  if (plan.loss >= 0) emit_loss_result(plan);
}

}  // namespace mase::engine
