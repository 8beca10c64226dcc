// SPDX-License-Identifier: Apache-2.0
// Batch norms have no exact integers behind a rounded layer; they are folded before.
#include "mase/hardware/lower/integer_lowering.h"

namespace mase::batch_norm1d_lowering {
namespace {

const Register<IntegerLowering> registered{{
    .name = "batch_norm1d",
    .summary = "before the first rounding only, in software; fuse_batch_norm folds it",
    .lower = [](const IntegerCall& call) -> std::optional<std::vector<IntegerId>> {
      call.refuse(
          "a batch norm after a rounded layer has no exact integers",
          "run fuse_batch_norm before quantize; where the layer came quantised, fuse_batch_norm "
          "with quantized = true, which rounds its weights anew");
    },
}};

}  // namespace
}  // namespace mase::batch_norm1d_lowering
