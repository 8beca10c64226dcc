// SPDX-License-Identifier: Apache-2.0
// What the two layouts of matrix products of activations share.
#pragma once

#include "mase/engine/primitive.h"

namespace mase::engine {

void matmul_reference(Reference& call);
double matmul_multiply_adds(const Plan& plan, const Primitive& p);

}  // namespace mase::engine
