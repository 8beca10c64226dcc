// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/channels.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "mase/base/broadcast.h"
#include "mase/base/random.h"
#include "mase/formats/groups.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/value_type.h"

namespace mase {
namespace {

// Which channel of the old result each channel of the new one is.
struct ChannelMap {
  size_t axis = 1;
  std::vector<int64_t> source;
};

Grouping along(const Shape& shape, size_t axis) {
  return grouping(shape, {Granularity::Kind::axis, static_cast<int64_t>(axis)});
}

// The entries of one dimension in another order, some repeated, some left out.
Tensor gathered(const Tensor& tensor, size_t axis, const std::vector<int64_t>& source) {
  Shape shape = tensor.shape();
  const Grouping from = along(shape, axis);
  shape[axis] = static_cast<int64_t>(source.size());
  Tensor result(shape);
  const float* values = tensor.data<float>();
  float* out = result.mutable_data<float>();
  for (int64_t o = 0; o < from.outer; ++o)
    for (size_t j = 0; j < source.size(); ++j)
      std::copy_n(
          values + (o * from.groups + source[j]) * from.inner, from.inner,
          out + (o * static_cast<int64_t>(source.size()) + static_cast<int64_t>(j)) * from.inner);
  return result;
}

// What repeated inputs carry is shared out between them.
void share_out(Tensor& weight, size_t axis, const std::vector<int64_t>& source) {
  std::map<int64_t, float> times;
  for (const int64_t channel : source) ++times[channel];
  const Grouping groups = along(weight.shape(), axis);
  float* values = weight.mutable_data<float>();
  for (size_t j = 0; j < source.size(); ++j) {
    const float share = 1 / times[source[j]];
    if (share == 1) continue;
    groups.for_each(static_cast<int64_t>(j), [&](int64_t at) { values[at] *= share; });
  }
}

void add_noise(Tensor& weight, size_t axis, int64_t first, const ResizeOptions& options,
               const std::string& path) {
  Random random(options.seed, "resize " + path);
  const Grouping groups = along(weight.shape(), axis);
  float* values = weight.mutable_data<float>();
  for (int64_t j = first; j < groups.groups; ++j)
    groups.for_each(j, [&](int64_t at) {
      values[at] *= static_cast<float>(1 + options.noise * random.normal());
    });
}

// All channels in turn as often as needed, or those with the largest weights in their order.
std::vector<int64_t> chosen_channels(const Tensor& weight, size_t axis, int64_t wanted) {
  const Grouping groups = along(weight.shape(), axis);
  std::vector<int64_t> source(static_cast<size_t>(wanted));
  if (wanted >= groups.groups) {
    for (int64_t j = 0; j < wanted; ++j) source[static_cast<size_t>(j)] = j % groups.groups;
    return source;
  }
  std::vector<double> size(static_cast<size_t>(groups.groups));
  for (int64_t g = 0; g < groups.groups; ++g)
    groups.for_each(
        g, [&](int64_t at) { size[static_cast<size_t>(g)] += std::abs(weight.data<float>()[at]); });
  std::vector<int64_t> order(size.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return size[static_cast<size_t>(a)] > size[static_cast<size_t>(b)];
  });
  std::copy_n(order.begin(), wanted, source.begin());
  std::sort(source.begin(), source.end());
  return source;
}

class Resizer {
 public:
  Resizer(const Graph& graph, const std::map<std::string, int64_t>& outputs,
          const ResizeOptions& options)
      : old_(graph), graph_(graph), outputs_(outputs), options_(options) {
    old_shapes_ = infer_shapes(graph, 2);
    shapes_.resize(graph.id_limit());
    maps_.resize(graph.id_limit());
  }

  Graph run() {
    for (const auto& [name, channels] : outputs_) check(name, channels);
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      Shape& shape = shapes_[static_cast<size_t>(id)];
      if (node.kind == NodeKind::placeholder || node.kind == NodeKind::get_attr) {
        shape = old_shapes_[static_cast<size_t>(id)];
      } else if (node.kind != NodeKind::output) {
        visit(node);
      }
    }
    for (const NodeId result : graph_.outputs()) {
      const auto at = static_cast<size_t>(result);
      if (shapes_[at] != old_shapes_[at])
        throw Error(graph_.node(result).name,
                    fmt::format("these are the network's outputs: {} cannot become {}",
                                shape_text(old_shapes_[at]), shape_text(shapes_[at])),
                    "leave the last layer's channels as they are");
    }
    resolve_sizes(graph_);
    verify(graph_);
    return std::move(graph_);
  }

 private:
  void check(const std::string& name, int64_t channels) const {
    const Node* node = old_.find(name);
    if (!node) throw Error(name, fmt::format("is no node of {}", printable(old_.name)));
    if (output_channels(old_, *node) < 0)
      throw Error(name, "multiplies by no weight: it has no channels of its own");
    if (channels < 1) throw Error(name, fmt::format("{} is no number of channels", channels));
  }

  void visit(const Node& node) {
    std::vector<Shape> inputs, old_inputs;
    bool changed = outputs_.count(node.name) > 0;
    for (const NodeId input : graph_.inputs_of(node.id)) {
      inputs.push_back(shapes_[static_cast<size_t>(input)]);
      old_inputs.push_back(old_shapes_[static_cast<size_t>(input)]);
      changed = changed || inputs.back() != old_inputs.back() ||
                maps_[static_cast<size_t>(input)].has_value();
    }
    const bool module = node.kind == NodeKind::call_module;
    if (changed && module && seen_.insert(node.target).second) change(node, inputs, old_inputs);
    const BoundCall call = bind_value(graph_, node);
    inputs.clear();
    for (const NodeId input : call.inputs) inputs.push_back(shapes_[static_cast<size_t>(input)]);
    try {
      shapes_[static_cast<size_t>(node.id)] = call.op->infer(call.attributes, inputs);
    } catch (const Error& error) {
      throw Error(node.name, error.cause(), "this network's channels cannot be changed so");
    }
    if (changed && !maps_[static_cast<size_t>(node.id)]) follow(node);
  }

  // Attributes that the inputs say (in_features, num_features) are asked for again.
  Value attributes_for(const OpRecord& op, const Value& given, const std::vector<Shape>& inputs,
                       const std::vector<Shape>& old_inputs) const {
    Dict result = given.as_dict();
    if (!op.complete) return result;
    for (const auto& [key, value] : given.as_dict()) {
      Dict before = given.as_dict(), after = given.as_dict();
      before.erase(key);
      after.erase(key);
      op.complete(before, old_inputs, 0);
      op.complete(after, inputs, 0);
      const Value* found = before.find(key);
      if (found && *found == value && after.find(key)) result.set(key, *after.find(key));
    }
    return result;
  }

  void change(const Node& node, const std::vector<Shape>& inputs,
              const std::vector<Shape>& old_inputs) {
    Module& module = graph_.modules().at(node.target);
    const Module& before = *old_.module_of(node);
    const OpRecord& op = *op_of(graph_, node);
    Value attributes = attributes_for(op, before.attributes, inputs, old_inputs);
    const auto wanted = outputs_.find(node.name);
    if (wanted != outputs_.end()) attributes[op.product->out_attribute] = wanted->second;
    if (attributes == before.attributes && !input_map(node)) return;
    if (!before.quantization.config.is_null() || !before.masks.empty())
      throw Error(node.name, before.masks.empty() ? "is quantised" : "is pruned",
                  "change channels first");
    if (op.product && !op.product->groups_attribute.empty() &&
        before.attributes[op.product->groups_attribute].as_int() > 1)
      throw Error(node.name, "multiplies in groups: its channels are not changed");
    module = make_module(before.op, attributes, options_.seed, node.target);
    module.frozen = before.frozen;
    if (options_.keep_weights) keep_weights(node, op, before, module);
  }

  const ChannelMap* input_map(const Node& node) const {
    const std::vector<NodeId> inputs = graph_.inputs_of(node.id);
    const auto& map = maps_[static_cast<size_t>(inputs.front())];
    return inputs.size() == 1 && map ? &*map : nullptr;
  }

  void keep_weights(const Node& node, const OpRecord& op, const Module& before, Module& module) {
    const ChannelMap* in = input_map(node);
    const size_t rank = old_shapes_[static_cast<size_t>(node.id)].size();
    if (!op.product) {
      // Per-channel numbers of a normalisation; anything else begins anew.
      for (TensorTable* table : {&module.parameters, &module.buffers})
        for (auto& [name, tensor] : *table) {
          const Tensor* old = before.find(name);
          if (old->shape() == tensor.shape() && !in)
            tensor = *old;
          else if (in && old->dtype() == DType::f32 && old->shape().size() == 1 &&
                   tensor.numel() == static_cast<int64_t>(in->source.size()))
            tensor = gathered(*old, 0, in->source);
          else if (old->shape() == tensor.shape() && old->numel() == 1)
            tensor = *old;  // num_batches_tracked
        }
      return;
    }
    const ProductInfo& product = *op.product;
    const auto out_axis = static_cast<size_t>(product.out_axis);
    Tensor weight = *before.find(product.weight);
    const int64_t old_channels = weight.shape()[out_axis];
    std::vector<int64_t> source =
        chosen_channels(weight, out_axis, module.find(product.weight)->shape()[out_axis]);
    weight = gathered(weight, out_axis, source);
    if (options_.noise > 0) add_noise(weight, out_axis, old_channels, options_, node.target);
    if (in) {
      if (in->axis != static_cast<size_t>(from_front(product.channel_axis, rank)))
        return;  // begins anew
      weight = gathered(weight, static_cast<size_t>(product.in_axis), in->source);
      share_out(weight, static_cast<size_t>(product.in_axis), in->source);
    }
    if (weight.shape() != module.find(product.weight)->shape()) return;
    *module.find(product.weight) = std::move(weight);
    if (const Tensor* bias = before.find(product.bias))
      *module.find(product.bias) = gathered(*bias, 0, source);
    if (static_cast<int64_t>(source.size()) != old_channels)
      maps_[static_cast<size_t>(node.id)] = ChannelMap{
          static_cast<size_t>(from_front(product.channel_axis, rank)), std::move(source)};
  }

  // Where the channels of the inputs are in the result: at the same place, or flattened with what
  // lies behind them. Where they are not found, later layers begin anew.
  void follow(const Node& node) {
    if (op_of(graph_, node)->product) return;
    const std::optional<ChannelMap>* map = nullptr;
    for (const NodeId input : graph_.inputs_of(node.id)) {
      const auto& one = maps_[static_cast<size_t>(input)];
      if (!one || (map && (*map)->source != one->source)) return;
      map = &one;
    }
    if (!map) return;
    const ChannelMap& in = **map;
    const Shape& shape = shapes_[static_cast<size_t>(node.id)];
    if (in.axis >= shape.size()) return;
    const auto channels = static_cast<int64_t>(in.source.size());
    if (shape[in.axis] == channels) {
      maps_[static_cast<size_t>(node.id)] = in;
    } else if (shape.size() == in.axis + 1 && shape[in.axis] % channels == 0) {
      const int64_t inner = shape[in.axis] / channels;
      ChannelMap flat{in.axis, {}};
      for (const int64_t channel : in.source)
        for (int64_t i = 0; i < inner; ++i) flat.source.push_back(channel * inner + i);
      maps_[static_cast<size_t>(node.id)] = std::move(flat);
    }
  }

  const Graph& old_;
  Graph graph_;
  const std::map<std::string, int64_t>& outputs_;
  const ResizeOptions& options_;
  std::vector<Shape> old_shapes_, shapes_;
  std::vector<std::optional<ChannelMap>> maps_;
  std::set<std::string> seen_;
};

}  // namespace

int64_t output_channels(const Graph& graph, const Node& node) {
  const Module* module = graph.module_of(node);
  const OpRecord* op = op_of(graph, node);
  if (!module || !op->product || !module->find(op->product->weight)) return -1;
  return module->attributes[op->product->out_attribute].as_int();
}

Graph resize_channels(const Graph& graph, const std::map<std::string, int64_t>& outputs,
                      const ResizeOptions& options) {
  return Resizer(graph, outputs, options).run();
}

}  // namespace mase
