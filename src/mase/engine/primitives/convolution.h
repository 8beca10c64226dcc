// SPDX-License-Identifier: Apache-2.0
// What a convolution means, its gradients, and how it is tried out.
#pragma once

#include "mase/engine/primitive.h"

namespace mase::engine {

void convolution_gradient(Backward& backward, const Primitive& p, int gradient);
void convolution_reference(Reference& call);
Slot generate_convolution(Trial& trial);
double convolution_multiply_adds(const Plan& plan, const Primitive& p);

}  // namespace mase::engine
