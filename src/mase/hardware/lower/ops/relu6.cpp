// SPDX-License-Identifier: Apache-2.0
// x within [0, 6].
#include "mase/hardware/lower/integer_lowering.h"

namespace mase::relu6_lowering {
namespace {

const Register<IntegerLowering> registered{{
    .name = "relu6",
    .summary = "x within [0, 6]",
    .lower = [](const IntegerCall& call) { return std::optional(call.limited(0, 6)); },
}};

}  // namespace
}  // namespace mase::relu6_lowering
