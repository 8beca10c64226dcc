// SPDX-License-Identifier: Apache-2.0
// BatchNorm1d: batch normalisation of [N, C] or [N, C, L].
#include "mase/ops/batch_norm.h"

namespace mase::batch_norm1d_op {
namespace {

const Register<OpRecord> registered{
    batch_norm_record({"batch_norm1d", "BatchNorm1d", "[N, C] or [N, C, L]", {2, 3}})};

}  // namespace
}  // namespace mase::batch_norm1d_op
