// SPDX-License-Identifier: Apache-2.0
// sign: -1, 0 or 1.
#include <cmath>

#include "mase/ops/pointwise.h"

namespace mase::sign_op {
namespace {

const Register<OpRecord> registered{pointwise(
    {.name = "sign", .function = "torch.sign", .mase_type = {}, .summary = "-1, 0 or 1"},
    [](double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); },
    [](double) { return 0.0; })};

}  // namespace
}  // namespace mase::sign_op
