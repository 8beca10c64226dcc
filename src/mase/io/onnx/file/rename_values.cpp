// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/file/rename_values.h"

#include <memory>
#include <utility>

namespace mase::onnx {

std::vector<NodeData> renamed(std::vector<NodeData> nodes,
                              const std::map<std::string, std::string>& names) {
  const auto rename = [&](std::string& name) {
    const auto known = names.find(name);
    if (known != names.end()) name = known->second;
  };
  for (NodeData& node : nodes) {
    for (std::string& name : node.inputs) rename(name);
    for (std::string& name : node.outputs) rename(name);
    for (Attribute& attribute : node.attributes) {
      if (!attribute.graph) continue;
      auto inner = std::make_shared<GraphData>(*attribute.graph);
      std::map<std::string, std::string> outer = names;  // what it does not name itself
      for (const ValueInfo& input : inner->inputs) outer.erase(input.name);
      for (const TensorData& tensor : inner->initializers) outer.erase(tensor.name);
      inner->nodes = renamed(std::move(inner->nodes), outer);
      for (ValueInfo& output : inner->outputs) {
        const auto known = outer.find(output.name);
        if (known != outer.end()) output.name = known->second;
      }
      attribute.graph = std::move(inner);
    }
  }
  return nodes;
}

}  // namespace mase::onnx
