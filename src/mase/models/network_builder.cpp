// SPDX-License-Identifier: Apache-2.0
#include "mase/models/network_builder.h"

#include "mase/base/random.h"
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
  input_ = graph_.add_placeholder("x", std::move(sample));
  shapes_.resize(static_cast<size_t>(input_) + 1);
  shapes_[static_cast<size_t>(input_)] = std::move(shape);
}

Shape NetworkBuilder::shape(NodeId node) const { return shapes_.at(static_cast<size_t>(node)); }

NodeId NetworkBuilder::module(const std::string& path, const std::string& op_name, Dict attributes,
                              NodeId x) {
  const OpRecord& op = find_op(op_name);
  if (op.complete) op.complete(attributes, {shape(x)}, 0);
  Module made = values_ ? make_module(op_name, Value(std::move(attributes)), seed_, path)
                        : make_empty_module(op_name, Value(std::move(attributes)), path);
  const Shape result = op.infer(made.attributes, {shape(x)});
  const NodeId id = graph_.add_module(path, std::move(made), {x});
  shapes_.resize(static_cast<size_t>(id) + 1);
  shapes_[static_cast<size_t>(id)] = result;
  return id;
}

NodeId NetworkBuilder::function(const std::string& op, std::vector<NodeId> inputs,
                                std::vector<Value> literals) {
  std::vector<Argument> args;
  if (find_op(op).max_inputs < 0) {
    std::vector<Argument> items;
    for (const NodeId input : inputs) items.push_back(Argument::node(input));
    args.push_back(Argument::list(std::move(items)));
  } else {
    for (const NodeId input : inputs) args.push_back(Argument::node(input));
  }
  for (Value& literal : literals) args.push_back(Argument::literal(std::move(literal)));
  const NodeId id = graph_.call_function(op, std::move(args));
  const BoundCall call = bind_call(graph_, graph_.node(id));
  std::vector<Shape> given;
  for (const NodeId input : call.inputs) given.push_back(shape(input));
  shapes_.resize(static_cast<size_t>(id) + 1);
  shapes_[static_cast<size_t>(id)] = call.op->infer(call.attributes, given);
  return id;
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
  Tensor tensor(shape);
  Random random(seed_, "init:" + tensor_name);
  float* values = tensor.mutable_data<float>();
  for (int64_t i = 0; values_ && i < tensor.numel(); ++i)
    values[i] = static_cast<float>(deviation * random.normal());
  const NodeId id = graph_.add_constant(tensor_name, std::move(tensor), true);
  shapes_.resize(static_cast<size_t>(id) + 1);
  shapes_[static_cast<size_t>(id)] = shape;
  return id;
}

Graph NetworkBuilder::finish(std::vector<NodeId> results) {
  graph_.add_output(std::move(results));
  declare_index_inputs(graph_);
  return std::move(graph_);
}

}  // namespace mase
