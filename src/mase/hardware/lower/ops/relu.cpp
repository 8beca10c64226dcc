// SPDX-License-Identifier: Apache-2.0
// max(x, 0).
#include "mase/hardware/lower/integer_lowering.h"

namespace mase::relu_lowering {
namespace {

const Register<IntegerLowering> registered{{
    .name = "relu",
    .summary = "max(x, 0)",
    .lower =
        [](const IntegerCall& call) {
          return std::optional(call.each([&](IntegerId x) { return call.builder.relu(x); }));
        },
}};

}  // namespace
}  // namespace mase::relu_lowering
