// SPDX-License-Identifier: Apache-2.0
// trunc: the whole number towards zero.
#include <cmath>

#include "mase/ops/pointwise.h"

namespace mase::trunc_op {
namespace {

const Register<OpRecord> registered{pointwise(
    {.name = "trunc",
     .function = "torch.trunc",
     .mase_type = {},
     .summary = "the whole number towards zero"},
    [](double x) { return std::trunc(x); }, [](double) { return 0.0; })};

}  // namespace
}  // namespace mase::trunc_op
