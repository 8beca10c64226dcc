// SPDX-License-Identifier: Apache-2.0
// The same features in the same order.
#include "mase/hardware/integer_lowering.h"

namespace mase::reshape_lowering {
namespace {

const Register<IntegerLowering> registered{{
    .name = "reshape",
    .summary = "the features as they are",
    .lower = [](const IntegerCall& call) { return std::optional(call.inputs[0]); },
}};

}  // namespace
}  // namespace mase::reshape_lowering
