// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/write/standard_node.h"

#include <utility>

#include "mase/base/error.h"

namespace mase::onnx {

Operand standard_node(NodeContext& context, const std::string& op,
                      const std::vector<Operand>& inputs, std::vector<Attribute> attributes,
                      std::optional<int64_t> version) {
  const OnnxOperator* record = Registry<OnnxOperator>::instance().find(op);
  if (!record) context.fail(fmt::format("there is no operator {} here", op));
  Conversion& model = context.model();
  NodeData inner = context.node();
  // Names that no file can hold: ONNX's own are unique among themselves only.
  const std::string prefix =
      fmt::format("{}{}inside/", inner.outputs.empty() ? "" : inner.outputs[0], '\0');
  if (inner.name.empty() && !inner.outputs.empty()) inner.name = inner.outputs[0];  // in errors
  inner.domain.clear();
  inner.op = op;
  inner.attributes = std::move(attributes);
  inner.inputs.clear();
  for (const Operand& input : inputs) {
    inner.inputs.push_back(fmt::format("{}{}", prefix, inner.inputs.size()));
    model.values.insert_or_assign(inner.inputs.back(), input);
  }
  inner.outputs = {prefix + "result"};
  model.values.erase(inner.outputs[0]);
  NodeContext nested(model, inner, version.value_or(model.standard_version));
  record->convert(nested);
  const auto found = model.values.find(inner.outputs[0]);
  MASE_CHECK(found != model.values.end(), "{} gave nothing", op);
  Operand result = std::move(found->second);
  model.values.erase(found);
  for (const std::string& name : inner.inputs) model.values.erase(name);
  return result;
}

}  // namespace mase::onnx
