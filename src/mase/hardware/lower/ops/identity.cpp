// SPDX-License-Identifier: Apache-2.0
// The features as they are.
#include "mase/hardware/lower/integer_lowering.h"

namespace mase::identity_lowering {
namespace {

const Register<IntegerLowering> registered{{
    .name = "identity",
    .summary = "the features as they are",
    .lower = [](const IntegerCall& call) { return std::optional(call.inputs[0]); },
}};

}  // namespace
}  // namespace mase::identity_lowering
