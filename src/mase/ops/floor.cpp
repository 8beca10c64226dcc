// SPDX-License-Identifier: Apache-2.0
// floor: the whole number at or below.
#include <cmath>

#include "mase/ops/pointwise.h"

namespace mase::floor_op {
namespace {

const Register<OpRecord> registered{pointwise(
    {.name = "floor",
     .function = "torch.floor",
     .mase_type = {},
     .summary = "the whole number at or below"},
    [](double x) { return std::floor(x); }, [](double) { return 0.0; })};

}  // namespace
}  // namespace mase::floor_op
