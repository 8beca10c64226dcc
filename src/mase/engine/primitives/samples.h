// SPDX-License-Identifier: Apache-2.0
// What the steps that take a caller's samples share.
#pragma once

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"

namespace mase::engine {

// What a gather does besides: its name, and what it does to the samples.
const char* gather_name(const GatherPayload& gather);
kernels::Normalizer normalizer_of(const GatherPayload& gather, const Memory& memory);

// The scale and shift of a batch norm that is applied to samples as they are gathered, once per
// change of the parameters.
Step prepare_scale(Plan& plan, const GatherPayload& gather, int64_t features);

}  // namespace mase::engine
