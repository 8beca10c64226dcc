// SPDX-License-Identifier: Apache-2.0
// What a convolution means, its gradients, and how it is tried out.
#pragma once

#include "mase/engine/primitive.h"

namespace mase::engine {

void convolution_gradient(Backward& backward, const Primitive& p, int gradient);
void convolution_reference(Reference& call);
// Every place of the result, with every tap of its output and the place of the image that it meets.
void each_product(
    const Lowering::Convolution& options, const Shape& weights, const Shape& image,
    const Shape& result,
    const std::function<void(const Shape& at, const Shape& tap, const Shape& place)>& visit);
Slot generate_convolution(Trial& trial);
double convolution_multiply_adds(const Plan& plan, const Primitive& p);

}  // namespace mase::engine
