// SPDX-License-Identifier: Apache-2.0
// Convolutions one behind the other as one primitive: what the rewrite that makes it is told.
#pragma once

#include <vector>

#include "mase/engine/plan.h"

namespace mase::engine {

struct ConvolutionBandsPayload {
  std::vector<Primitive> parts;  // in their order, each the only reader of the one before
};

// Makes one primitive of them in the place of the last, if they can be computed together and what
// lies between them is `least` floats or more. Whether it did.
bool join_into_bands(Plan& plan, const std::vector<Primitive*>& parts, size_t least);

}  // namespace mase::engine
