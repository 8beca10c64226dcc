// SPDX-License-Identifier: Apache-2.0
// The values of one operand against what its number format can represent.
#pragma once

#include <string>

#include "mase/base/value.h"

namespace mase {

// {"node", "operand", "edges", "counts", "lowest", "largest", "grid", "codes", "codes_used"}; ""
// for what is no such record.
std::string histogram_chart(const Value& record);

}  // namespace mase
