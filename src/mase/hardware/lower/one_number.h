// SPDX-License-Identifier: Apache-2.0
// Which operations are functions of one number: element by element the same expression of their
// only operand, whatever stands beside it. Their own lowering says so.
#pragma once

#include "mase/ir/op.h"

namespace mase {

bool is_function_of_one_number(const OpRecord& op, const Value& attributes);

}  // namespace mase
