// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/op.h"

#include "mase/base/random.h"
#include "mase/ir/graph.h"

namespace mase {

const OpRecord& find_op(const std::string& name, const std::string& place) {
  const Registry<OpRecord>& ops = Registry<OpRecord>::instance();
  if (const OpRecord* op = ops.find(name)) return *op;
  std::vector<std::string> known = ops.names();
  for (const OpRecord* op : ops.all()) {
    if (op->class_name.empty()) continue;
    if (op->class_name == name) return *op;
    known.push_back(op->class_name);
  }
  const bool any_near = !nearest_names(name, known, 1).empty();
  throw Error(place, fmt::format("unknown op '{}'", printable(name)),
              any_near ? suggestion(name, known) : "ch --info op lists what there is");
}

OperandRules operand_rules(const OpRecord& op) {
  OperandRules rules{op.operands, op.required_operands, op.unsigned_operands, op.operand_parts};
  rules.summed = op.summed_axes;
  int64_t axis = -1;
  if (op.product) axis = op.product->channel_axis;
  if (op.channel_norm) axis = op.channel_norm->channel_axis;
  if (axis != -1) rules.features = axis;
  return rules;
}

Array Array::from(const Tensor& tensor) {
  Array array(tensor.shape());
  for (int64_t i = 0; i < tensor.numel(); ++i) array.data[static_cast<size_t>(i)] = tensor.item(i);
  return array;
}

Tensor Array::to_tensor(DType dtype) const {
  return Tensor::of<double>(shape, std::span<const double>(data)).to(dtype);
}

Module make_module(const std::string& op_name, const Value& attributes, uint64_t seed,
                   const std::string& path) {
  const OpRecord& op = find_op(op_name, Error(attributes.position(), path, "").place());
  Module module;
  module.op = op.name;
  module.attributes = validate(attributes, op.attributes, path);
  if (!op.params) return module;
  for (const ParamSpec& spec : op.params(module.attributes)) {
    Tensor tensor(spec.shape, DType::f64);
    Random random(seed, "init:" + path + "." + spec.name);
    double* values = tensor.mutable_data<double>();
    for (int64_t i = 0; i < tensor.numel(); ++i)
      values[i] = spec.normal_deviation > 0 ? spec.normal_deviation * random.normal()
                  : spec.uniform_bound > 0 ? random.uniform(-spec.uniform_bound, spec.uniform_bound)
                                           : spec.constant;
    (spec.trainable ? module.parameters : module.buffers)
        .emplace_back(spec.name, tensor.to(spec.dtype));
  }
  return module;
}

}  // namespace mase
