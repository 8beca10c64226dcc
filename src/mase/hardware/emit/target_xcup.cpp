// SPDX-License-Identifier: Apache-2.0
// AMD's parts with six-input tables that have two outputs and carry chains of four bits: 7 series,
// UltraScale and UltraScale+, whose Vivado takes CARRY4 for half a CARRY8.
#include "mase/hardware/carry/carry_cells.h"
#include "mase/hardware/emit/target.h"

namespace mase::target_xcup_part {
namespace {

const Register<TargetRecord> registered{{
    .name = "xcup",
    .summary = "AMD 7 series to UltraScale+: sums of two and three are chains of CARRY4 and LUT6_2",
    .carry_chains = true,
    .modules = carry_modules,
    .plain_modules = plain_carry_modules,
    .models = carry_cell_models,
}};

}  // namespace
}  // namespace mase::target_xcup_part
