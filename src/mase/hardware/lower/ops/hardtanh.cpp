// SPDX-License-Identifier: Apache-2.0
// x within two limits.
#include "mase/hardware/lower/integer_lowering.h"

namespace mase::hardtanh_lowering {
namespace {

const Register<IntegerLowering> registered{{
    .name = "hardtanh",
    .summary = "x within [min_val, max_val]",
    .lower =
        [](const IntegerCall& call) {
          const Value& attributes = call.call.attributes;
          return std::optional(
              call.limited(attributes["min_val"].as_double(), attributes["max_val"].as_double()));
        },
}};

}  // namespace
}  // namespace mase::hardtanh_lowering
