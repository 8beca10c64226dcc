// SPDX-License-Identifier: Apache-2.0
// In inference the features as they are.
#include "mase/hardware/lower/integer_lowering.h"

namespace mase::dropout_lowering {
namespace {

const Register<IntegerLowering> registered{{
    .name = "dropout",
    .summary = "the features as they are",
    .lower = [](const IntegerCall& call) { return std::optional(call.inputs[0]); },
}};

}  // namespace
}  // namespace mase::dropout_lowering
