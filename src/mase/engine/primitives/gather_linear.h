// SPDX-License-Identifier: Apache-2.0
// A gather and small linear layers behind it as one primitive: what the rewrites that make it are
// told.
#pragma once

#include <vector>

#include "mase/engine/plan.h"

namespace mase::engine {

struct GatherLinearPayload {
  std::vector<Primitive> parts;  // the gather, then the layers in their order
};

// Makes `linear`, the only reader of `before`, one primitive with it: a gather, or a gather and the
// layers behind that. False where the kernel takes no layers of these sizes.
bool join_gather_linear(Plan& plan, Primitive& before, Primitive& linear);

}  // namespace mase::engine
