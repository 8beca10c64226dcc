// SPDX-License-Identifier: Apache-2.0
// cos: the cosine.
#include <cmath>

#include "mase/ops/pointwise.h"

namespace mase::cos_op {
namespace {

const Register<OpRecord> registered{pointwise(
    {.name = "cos",
     .function = "torch.cos",
     .mase_type = {},
     .summary = "the cosine",
     .element = ElementRule::real},
    [](double x) { return std::cos(x); }, [](double x) { return -std::sin(x); })};

}  // namespace
}  // namespace mase::cos_op
