// SPDX-License-Identifier: Apache-2.0
// BatchNorm2d: batch normalisation of [N, C, H, W].
#include "mase/ops/batch_norm.h"

namespace mase::batch_norm2d_op {
namespace {

const Register<OpRecord> registered{
    batch_norm_record({"batch_norm2d", "BatchNorm2d", "[N, C, H, W]", {4}})};

}  // namespace
}  // namespace mase::batch_norm2d_op
