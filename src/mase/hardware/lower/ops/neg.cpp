// SPDX-License-Identifier: Apache-2.0
// -x.
#include "mase/hardware/lower/integer_lowering.h"

namespace mase::neg_lowering {
namespace {

const Register<IntegerLowering> registered{{
    .name = "neg",
    .summary = "-x",
    .lower =
        [](const IntegerCall& call) {
          return std::optional(call.each([&](IntegerId x) { return call.builder.negate(x); }));
        },
}};

}  // namespace
}  // namespace mase::neg_lowering
