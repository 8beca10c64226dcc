// SPDX-License-Identifier: Apache-2.0
// Convolutions that lead back from the result to the image: as operations of their own, and as
// gradients.
#pragma once

#include <optional>

#include "mase/engine/primitive.h"

namespace mase::engine::convolution_primitive {

// With a stride of 1 the way back is a convolution too, of the padded result with the taps in
// reverse (turn_taps): sums stay in registers, where the sum tap by tap goes through memory.
// Nothing if it does not apply.
std::optional<Lowering::Convolution> turned_back(Lowering::Convolution options);
// The weights of a convolution with their taps turned, as a tensor.
TensorInfo turned_weights(const Plan& plan, int weight, int64_t groups);

// Variants of transposed convolutions.
std::optional<Step> turned(Plan& plan, Primitive& p);
std::optional<Step> tap_by_tap(Plan& plan, Primitive& p);

}  // namespace mase::engine::convolution_primitive
