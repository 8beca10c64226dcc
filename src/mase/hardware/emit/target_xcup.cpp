// SPDX-License-Identifier: Apache-2.0
// AMD's parts with six-input tables that have two outputs and carry chains of four bits: 7 series,
// UltraScale and UltraScale+, whose Vivado takes CARRY4 for half a CARRY8.
#include "mase/hardware/carry/carry_cells.h"
#include "mase/hardware/emit/table_cells.h"
#include "mase/hardware/emit/target.h"

namespace mase::target_xcup_part {
namespace {

using Modules = std::map<std::string, std::string>;

Modules joined(Modules modules, Modules more) {
  modules.merge(more);
  return modules;
}

const Register<TargetRecord> registered{{
    .name = "xcup",
    .summary = "AMD 7 series to UltraScale+: sums of two and three are chains of CARRY4 and LUT6_2",
    .cells = true,
    .modules = [] { return joined(carry_modules(), table_modules()); },
    .plain_modules = [] { return joined(plain_carry_modules(), plain_table_modules()); },
    .models = [] { return carry_cell_models() + table_cell_models(); },
    .library = "+/xilinx/cells_sim.v",
}};

}  // namespace
}  // namespace mase::target_xcup_part
