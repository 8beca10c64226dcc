// SPDX-License-Identifier: Apache-2.0
// Batch norms that are multiplied into the weights of the product before them.
#pragma once

#include "mase/engine/plan.h"

namespace mase::engine {

// w' = w * s, b' = (b - mean) * s + bias with s = weight / sqrt(var + eps), once per change of the
// parameters. The weight is [out][in].
Step prepare_folded(Plan& plan, const Primitive& product, int norm, int folded_weight,
                    int folded_bias);

}  // namespace mase::engine
