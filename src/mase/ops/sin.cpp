// SPDX-License-Identifier: Apache-2.0
// sin: the sine.
#include <cmath>

#include "mase/ops/pointwise.h"

namespace mase::sin_op {
namespace {

const Register<OpRecord> registered{pointwise(
    {.name = "sin",
     .function = "torch.sin",
     .mase_type = {},
     .summary = "the sine",
     .element = ElementRule::real},
    [](double x) { return std::sin(x); }, [](double x) { return std::cos(x); })};

}  // namespace
}  // namespace mase::sin_op
