// SPDX-License-Identifier: Apache-2.0
#include "mase/models/network_builder.h"

#include <algorithm>

#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/ir/empty_module.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/value_type.h"

namespace mase {

NetworkBuilder::NetworkBuilder(const std::string& name, const ModelInputs& inputs,
                               Shape default_sample, int64_t default_outputs)
    : seed_(inputs.seed),
      values_(inputs.values),
      outputs_(inputs.outputs > 0 ? inputs.outputs : default_outputs) {
  graph_.name = name;
  Shape sample = inputs.sample_shape.empty() ? default_sample : inputs.sample_shape;
  Shape shape = sample;
  shape.insert(shape.begin(), 1);
  input_ = known(graph_.add_placeholder("x", std::move(sample)), std::move(shape));
}

NetworkBuilder::NetworkBuilder(const std::string& name, int64_t most_values, std::string place)
    : seed_(0), values_(false), values_left_(most_values), place_(std::move(place)) {
  graph_.name = name;
}

NodeId NetworkBuilder::known(NodeId id, Shape shape) {
  shapes_.resize(std::max(shapes_.size(), static_cast<size_t>(id) + 1));
  shapes_[static_cast<size_t>(id)] = std::move(shape);
  return id;
}

void NetworkBuilder::charge(const Shape& shape, const std::string& name) {
  if (values_left_ < 0) return;
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size > 0 && count > values_left_ / size)
      throw Error(place_,
                  fmt::format("a tensor '{}' of {} is larger than all that there are",
                              printable(name), shape_text(shape)),
                  "the description and the tensors do not belong together");
    count *= size;
  }
  values_left_ -= count;
  constexpr int64_t free = 1 << 12;  // heads are made anew
  const auto known = counts_.find(name);
  if (known != counts_.end() && count > 4 * known->second + free)
    throw Error(place_,
                fmt::format("'{}' has {} values, the description says {}", printable(name),
                            known->second, shape_text(shape)),
                "the description and the tensors do not belong together");
}

NodeId NetworkBuilder::placeholder(const std::string& name, const Shape& sample, DType element) {
  Shape shape = sample;
  shape.insert(shape.begin(), 1);
  return known(graph_.add_placeholder(name, sample, element), std::move(shape));
}

NodeId NetworkBuilder::tensor(const std::string& tensor_name) {
  const Tensor* found = graph_.tensor(tensor_name);
  MASE_CHECK(found, "no tensor {}", tensor_name);
  const Shape shape = found->shape();
  return known(graph_.get_attr(tensor_name), shape);
}

Shape NetworkBuilder::shape(NodeId node) const { return shapes_.at(static_cast<size_t>(node)); }

NodeId NetworkBuilder::module(const std::string& path, const std::string& op_name, Dict attributes,
                              NodeId x) {
  const OpRecord& op = find_op(op_name);
  if (op.complete) op.complete(attributes, {shape(x)}, 0);
  if (values_left_ >= 0 && op.params)
    for (const ParamSpec& spec : op.params(validate(Value(attributes), op.attributes, path)))
      charge(spec.shape, path + "." + spec.name);
  Module made = values_ ? make_module(op_name, Value(std::move(attributes)), seed_, path)
                        : make_empty_module(op_name, Value(std::move(attributes)), path);
  const Shape result = op.infer(made.attributes, {shape(x)});
  return known(graph_.add_module(path, std::move(made), {x}), result);
}

NodeId NetworkBuilder::function(const std::string& op, std::vector<NodeId> inputs,
                                std::vector<Value> literals,
                                std::vector<std::pair<std::string, Value>> named) {
  std::vector<Argument> args;
  if (find_op(op).max_inputs < 0) {
    std::vector<Argument> items;
    for (const NodeId input : inputs) items.push_back(Argument::node(input));
    args.push_back(Argument::list(std::move(items)));
  } else {
    for (const NodeId input : inputs) args.push_back(Argument::node(input));
  }
  for (Value& literal : literals) args.push_back(Argument::literal(std::move(literal)));
  std::vector<std::pair<std::string, Argument>> kwargs;
  for (auto& [name, literal] : named)
    kwargs.emplace_back(name, Argument::literal(std::move(literal)));
  const NodeId id = graph_.call_function(op, std::move(args), std::move(kwargs));
  const BoundCall call = bind_call(graph_, graph_.node(id));
  std::vector<Shape> given;
  for (const NodeId input : call.inputs) given.push_back(shape(input));
  return known(id, call.op->infer(call.attributes, given));
}

NodeId NetworkBuilder::conv(const std::string& path, NodeId x, int64_t channels, int64_t kernel,
                            int64_t stride, int64_t padding, bool bias, int64_t groups) {
  return module(path, "conv2d",
                {{"out_channels", channels},
                 {"kernel_size", kernel},
                 {"stride", stride},
                 {"padding", padding},
                 {"groups", groups},
                 {"bias", bias}},
                x);
}

NodeId NetworkBuilder::parameter(const std::string& tensor_name, const Shape& shape,
                                 double deviation) {
  charge(shape, tensor_name);
  Tensor tensor(shape);
  Random random(seed_, "init:" + tensor_name);
  float* values = tensor.mutable_data<float>();
  for (int64_t i = 0; values_ && i < tensor.numel(); ++i)
    values[i] = static_cast<float>(deviation * random.normal());
  return known(graph_.add_constant(tensor_name, std::move(tensor), true), shape);
}

NodeId NetworkBuilder::buffer(const std::string& tensor_name, const Shape& shape) {
  return known(graph_.add_constant(tensor_name, Tensor(shape), false), shape);
}

Graph NetworkBuilder::finish(std::vector<NodeId> results) {
  graph_.add_output(std::move(results));
  declare_index_inputs(graph_);
  return std::move(graph_);
}

}  // namespace mase
