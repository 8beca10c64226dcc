// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mase/engine/plan.h"

namespace mase::engine {

// The loss itself leaves its gradient behind while it is computed: there is no step for it.
bool gradient_comes_forward(const Plan& plan, const Primitive& p);

void emit_loss_result(Plan& plan);  // what no step has said yet: the loss, the arg-max hits

}  // namespace mase::engine
