// SPDX-License-Identifier: Apache-2.0
// round: the nearest whole number, halves to the even one.
#include <cmath>

#include "mase/ops/pointwise.h"

namespace mase::round_op {
namespace {

const Register<OpRecord> registered{pointwise(
    {.name = "round",
     .function = "torch.round",
     .mase_type = {},
     .summary = "the nearest whole number, halves to the even one"},
    [](double x) { return std::nearbyint(x); }, [](double) { return 0.0; })};

}  // namespace
}  // namespace mase::round_op
