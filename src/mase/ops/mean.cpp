// SPDX-License-Identifier: Apache-2.0
// mean: over all or some dimensions.
#include "mase/ops/reduction.h"

namespace mase::mean_op {
namespace {

const Register<OpRecord> registered{reduction({.name = "mean",
                                               .function = "torch.mean",
                                               .mase_type = "implicit_func",
                                               .summary = "mean over dimensions",
                                               .element = ElementRule::real},
                                              ReduceKind::mean)};

}  // namespace
}  // namespace mase::mean_op
