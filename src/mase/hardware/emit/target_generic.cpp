// SPDX-License-Identifier: Apache-2.0
// The generic target: plain SystemVerilog, sums as `+`.
#include "mase/hardware/emit/target.h"

namespace mase::target_generic_part {
namespace {

const Register<TargetRecord> registered{{
    .name = "generic",
    .summary = "any part: plain SystemVerilog, sums are left to synthesis",
}};

}  // namespace
}  // namespace mase::target_generic_part
