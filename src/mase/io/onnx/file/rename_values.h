// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mase/io/onnx/file/model.h"

namespace mase::onnx {

// Nodes whose values have other names, in the graphs of their attributes too, as far as those do
// not name them themselves.
std::vector<NodeData> renamed(std::vector<NodeData> nodes,
                              const std::map<std::string, std::string>& names);

}  // namespace mase::onnx
