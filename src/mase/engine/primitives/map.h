// SPDX-License-Identifier: Apache-2.0
// Element-wise sweeps over rows of lanes, operands broadcast along the rows.
#pragma once

#include <memory>

#include "mase/engine/plan.h"
#include "mase/engine/tile.h"

namespace mase::engine {

struct MapOperands {
  std::vector<std::vector<int32_t>> index;  // row of each operand; empty: the same
  std::vector<bool> scalar;                 // one value per row
  std::vector<int64_t> stride;
  bool flat = false;  // every row of every operand is the row of the result
};
MapOperands map_operands(const Plan& plan, const std::vector<int>& operands, int out);
Kernel map_kernel(const Plan& plan, std::shared_ptr<const TileProgram> program,
                  const std::vector<int>& operands, int out, const Memory& memory);

}  // namespace mase::engine
