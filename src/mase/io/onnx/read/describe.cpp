// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/describe.h"

#include <map>
#include <set>

#include "mase/base/text.h"
#include "mase/io/onnx/read/operator.h"
#include "mase/io/onnx/write/own_graph.h"

namespace mase::onnx {
namespace {

void count_operators(const std::vector<NodeData>& nodes, std::map<std::string, int64_t>& counts) {
  for (const NodeData& node : nodes) {
    ++counts[operator_name(node.domain, node.op)];
    for (const Attribute& attribute : node.attributes)
      if (attribute.graph) count_operators(attribute.graph->nodes, counts);
  }
}

}  // namespace

std::string value_text(const ValueInfo& value) {
  if (!value.is_tensor) return "no tensor";
  if (!value.shape) return element_name(value.element);
  std::vector<std::string> sizes;
  for (const Dimension& dimension : *value.shape)
    sizes.push_back(dimension.size                ? std::to_string(*dimension.size)
                    : dimension.parameter.empty() ? "?"
                                                  : printable(dimension.parameter));
  return fmt::format("{} [{}]", element_name(value.element), join(sizes, ", "));
}

Value describe(const Model& model) {
  std::set<std::string> constants;
  for (const TensorData& tensor : model.graph.initializers) constants.insert(tensor.name);
  Dict inputs, outputs, sets;
  for (const ValueInfo& input : model.graph.inputs)
    if (!constants.count(input.name)) inputs.set(input.name, value_text(input));
  for (const ValueInfo& output : model.graph.outputs) outputs.set(output.name, value_text(output));
  for (const OperatorSet& set : model.operator_sets)
    sets.set(set.domain.empty() ? "ai.onnx" : set.domain, set.version);
  std::map<std::string, int64_t> counts;
  count_operators(model.graph.nodes, counts);
  for (const FunctionData& function : model.functions) count_operators(function.nodes, counts);
  Dict operators;
  for (const auto& [name, count] : counts) operators.set(name, count);
  Dict facts{{"ir_version", model.ir_version}};
  if (!model.producer.empty())
    facts.set("producer", model.producer_version.empty()
                              ? model.producer
                              : model.producer + " " + model.producer_version);
  facts.set("operator_sets", sets);
  facts.set("nodes", model.graph.nodes.size());
  if (!model.functions.empty()) facts.set("functions", model.functions.size());
  facts.set("inputs", inputs);
  facts.set("outputs", outputs);
  facts.set("operators", operators);
  if (!model.doc.empty()) facts.set("doc", model.doc);
  for (const auto& [key, value] : model.metadata)
    if (key != graph_property) facts.set(key, value);  // the graph itself is shown beside
  return facts;
}

}  // namespace mase::onnx
