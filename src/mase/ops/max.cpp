// SPDX-License-Identifier: Apache-2.0
// max: the largest value, along a dimension also where it stands.
#include "mase/ops/extremum.h"

namespace mase::max_op {
namespace {

const Register<OpRecord> registered{extremum({.name = "max",
                                              .function = "torch.max",
                                              .mase_type = {},
                                              .summary = "the largest value, and where it stands"},
                                             true)};

}  // namespace
}  // namespace mase::max_op
