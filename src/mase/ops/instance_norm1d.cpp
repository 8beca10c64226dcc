// SPDX-License-Identifier: Apache-2.0
// InstanceNorm1d: see instance_norm.h.
#include "mase/ops/instance_norm.h"

namespace mase::instance_norm1d_op {
namespace {

const Register<OpRecord> registered{
    instance_norm_record("instance_norm1d", "InstanceNorm1d", "batch_norm1d")};

}  // namespace
}  // namespace mase::instance_norm1d_op
