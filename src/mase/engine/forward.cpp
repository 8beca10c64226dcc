// SPDX-License-Identifier: Apache-2.0
// Primitives => forward steps. A step names what it reads and writes; once every tensor has its
// place, `bind` turns it into a closure over plain pointers.
#include "mase/engine/primitive.h"
#include "mase/engine/primitives/loss.h"

namespace mase::engine {

void emit_forward(Plan& plan) {
  for (size_t i = 0; i < plan.primitives.size(); ++i) {
    if (plan.primitives[i].removed) continue;
    Step step = plan.primitives[i].record->forward(plan, plan.primitives[i]);
    const Primitive& p = plan.primitives[i];
    step.node = p.node;
    const bool once = !plan.options.training && plan.at(p.out).constant;
    (once ? plan.prepare : p.of_loss ? plan.losses : plan.forward).push_back(std::move(step));
  }
  if (plan.loss >= 0) emit_loss_result(plan);
}

}  // namespace mase::engine
