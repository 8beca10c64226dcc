// SPDX-License-Identifier: Apache-2.0
// InstanceNorm2d: see instance_norm.h.
#include "mase/ops/instance_norm.h"

namespace mase::instance_norm2d_op {
namespace {

const Register<OpRecord> registered{
    instance_norm_record("instance_norm2d", "InstanceNorm2d", "batch_norm2d")};

}  // namespace
}  // namespace mase::instance_norm2d_op
