// SPDX-License-Identifier: Apache-2.0
// Operators of other domains that are a standard one and something around it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx {

// What the operator of the standard domain gives for these inputs, in the node's place. `version`:
// of its operator set, where that is not the model's.
Operand standard_node(NodeContext& context, const std::string& op,
                      const std::vector<Operand>& inputs, std::vector<Attribute> attributes,
                      std::optional<int64_t> version = {});

}  // namespace mase::onnx
