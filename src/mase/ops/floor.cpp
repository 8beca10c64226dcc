// SPDX-License-Identifier: Apache-2.0
// floor: the whole number at or below.
#include "mase/ops/elementwise.h"

namespace mase::floor_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "floor",
                                                 .function = "torch.floor",
                                                 .mase_type = "builtin_func",
                                                 .summary = "the whole number at or below"},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return floor(x);
                                                })};

}  // namespace
}  // namespace mase::floor_op
