// SPDX-License-Identifier: Apache-2.0
// Features of several heads that stand side by side, for all operators that are attention.
#pragma once

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx {

// [batch, length, heads * width] as [batch, heads, length, width].
Operand split_heads(NodeContext& context, const Operand& x, int64_t heads);
// The other way.
Operand joined_heads(NodeContext& context, const Operand& x);

}  // namespace mase::onnx
