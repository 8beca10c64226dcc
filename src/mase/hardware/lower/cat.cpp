// SPDX-License-Identifier: Apache-2.0
// Features of several values side by side.
#include "mase/hardware/integer_lowering.h"

namespace mase::cat_lowering {
namespace {

const Register<IntegerLowering> registered{{
    .name = "cat",
    .summary = "features of several values side by side",
    .lower =
        [](const IntegerCall& call) {
          if (call.shape.size() != 2)
            call.refuse("joins something else than features", "join along the last dimension");
          std::vector<IntegerId> result;
          for (const std::vector<IntegerId>& features : call.inputs)
            result.insert(result.end(), features.begin(), features.end());
          return std::optional(std::move(result));
        },
}};

}  // namespace
}  // namespace mase::cat_lowering
