// SPDX-License-Identifier: Apache-2.0
// min: the smallest value, along a dimension also where it stands.
#include "mase/ops/extremum.h"

namespace mase::min_op {
namespace {

const Register<OpRecord> registered{extremum({.name = "min",
                                              .function = "torch.min",
                                              .mase_type = {},
                                              .summary = "the smallest value, and where it stands"},
                                             false)};

}  // namespace
}  // namespace mase::min_op
