// SPDX-License-Identifier: Apache-2.0
// ceil: the whole number at or above.
#include <cmath>

#include "mase/ops/pointwise.h"

namespace mase::ceil_op {
namespace {

const Register<OpRecord> registered{pointwise(
    {.name = "ceil",
     .function = "torch.ceil",
     .mase_type = {},
     .summary = "the whole number at or above"},
    [](double x) { return std::ceil(x); }, [](double) { return 0.0; })};

}  // namespace
}  // namespace mase::ceil_op
