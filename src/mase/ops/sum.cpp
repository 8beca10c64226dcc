// SPDX-License-Identifier: Apache-2.0
// sum: over all or some dimensions.
#include "mase/ops/reduction.h"

namespace mase::sum_op {
namespace {

const Register<OpRecord> registered{reduction({.name = "sum",
                                               .function = "torch.sum",
                                               .mase_type = "implicit_func",
                                               .summary = "sum over dimensions"},
                                              ReduceKind::sum)};

}  // namespace
}  // namespace mase::sum_op
