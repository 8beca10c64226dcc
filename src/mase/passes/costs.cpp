// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/costs.h"

#include <cmath>

#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"

namespace mase {
namespace {

double bits_of(const Quantizer* quantizer, const Shape& shape) {
  if (!quantizer) return 32;
  if (quantizer->bits_per_value) return quantizer->bits_per_value(shape);
  return quantizer->precision.empty() ? 32 : static_cast<double>(quantizer->precision.front());
}

// Sum over a weight's values of the bits each one needs. Formats without a fixed step have no
// integer code to look into, and count their width.
double exact_weight_bits(const Quantizer* quantizer, const Tensor& weight, double width) {
  const bool has_step = quantizer && quantizer->smallest_positive && quantizer->elementwise &&
                        quantizer->precision.size() == 2 && quantizer->code_bits > 0;
  if (!has_step) return width * static_cast<double>(weight.numel());
  const Tensor used = quantize(*quantizer, weight);
  double bits = 0;
  for (const float value : used.values<float>())
    bits += significant_bits(value, *quantizer->smallest_positive);
  return bits;
}

LayerCost layer_cost(const Graph& graph, const Node& node, const std::vector<Shape>& shapes) {
  LayerCost cost;
  cost.name = node.name;
  cost.op = mase_op(graph, node);
  cost.type = class_text(graph, node);
  const BoundCall call = bind_call(graph, node);
  const Quantization& formats = graph.quantization_of(node);
  std::vector<Shape> inputs;
  for (const NodeId id : call.inputs) inputs.push_back(shapes[static_cast<size_t>(id)]);
  const Shape& out = shapes[static_cast<size_t>(node.id)];
  if (call.op->cost) {
    const OpCost op = call.op->cost(call.attributes, inputs, out);
    cost.macs = op.macs;
    cost.flops = op.flops;
  }
  const int64_t batch = out.empty() ? 1 : std::max<int64_t>(out[0], 1);
  cost.activation_bits = inputs.empty() ? 32 : bits_of(formats.find("data_in"), inputs[0]);
  cost.activation_memory =
      static_cast<double>(element_count(out)) * bits_of(formats.find("data_out"), out);
  const Tensor* weight = call.module ? call.module->find("weight") : nullptr;
  const Tensor* bias = call.module ? call.module->find("bias") : nullptr;
  if (call.module)
    for (const auto& [name, tensor] : call.module->parameters)
      cost.weight_memory +=
          static_cast<double>(tensor.numel()) * bits_of(formats.find(name), tensor.shape());
  if (!cost.is_product()) return cost;

  cost.activations = element_count(inputs[0]);
  double exact = 0;
  if (weight) {
    cost.weights = weight->numel();
    cost.weight_bits = bits_of(formats.find("weight"), weight->shape());
    exact = exact_weight_bits(formats.find("weight"), *weight, cost.weight_bits);
  } else if (inputs.size() > 1) {  // a product of two activations: the second stands for weights
    cost.weights = element_count(inputs[1]);
    cost.weight_bits = bits_of(formats.find(operand_of_input(graph, node, 1)), inputs[1]);
    exact = cost.weight_bits * static_cast<double>(cost.weights);
  }
  const double macs = static_cast<double>(cost.macs), samples = static_cast<double>(batch);
  cost.bitops = macs * cost.weight_bits * cost.activation_bits;
  // HGQ2 adds, for each output, the bits of its bias.
  double bias_term = 0;
  if (bias) {
    cost.bias_bits = bits_of(formats.find("bias"), bias->shape());
    bias_term = cost.bias_bits * static_cast<double>(element_count(out)) / samples;
  }
  cost.ebops = cost.bitops / samples + bias_term;
  const double uses =
      cost.weights > 0 ? macs / samples / static_cast<double>(cost.weights) : 0;  // per weight
  cost.ebops_exact = exact * cost.activation_bits * uses + bias_term;
  cost.operand_bits = static_cast<double>(cost.activations) * cost.activation_bits +
                      static_cast<double>(cost.weights) * cost.weight_bits;
  return cost;
}

Value layer_value(const LayerCost& cost) {
  return Dict{{"name", cost.name},
              {"op", cost.op},
              {"type", cost.type},
              {"macs", cost.macs},
              {"flops", cost.flops},
              {"weights", cost.weights},
              {"weight_bits", cost.weight_bits},
              {"activation_bits", cost.activation_bits},
              {"bitops", cost.bitops},
              {"ebops", cost.ebops},
              {"ebops_exact", cost.ebops_exact},
              {"operand_bits", cost.operand_bits},
              {"weight_memory_bits", cost.weight_memory},
              {"activation_memory_bits", cost.activation_memory}};
}

double weighted(const std::vector<LayerCost>& layers, bool weights, bool activations) {
  double bits = 0, values = 0;
  for (const LayerCost& layer : layers) {
    if (!layer.is_product()) continue;
    if (weights) {
      bits += static_cast<double>(layer.weights) * layer.weight_bits;
      values += static_cast<double>(layer.weights);
    }
    if (activations) {
      bits += static_cast<double>(layer.activations) * layer.activation_bits;
      values += static_cast<double>(layer.activations);
    }
  }
  return values > 0 ? bits / values : 32;
}

}  // namespace

int significant_bits(float value, double step) {
  const double code = std::abs(static_cast<double>(value)) / step;
  if (!(code >= 1) || code > 9e15) return 0;
  uint64_t bits = static_cast<uint64_t>(std::llround(code));
  while (bits != 0 && (bits & 1) == 0) bits >>= 1;
  int count = 0;
  for (; bits != 0; bits >>= 1) ++count;
  return count;
}

LayerCost NetworkCost::total() const {
  LayerCost sum;
  sum.name = "total";
  for (const LayerCost& layer : layers) {
    sum.macs += layer.macs;
    sum.flops += layer.flops;
    sum.weights += layer.weights;
    sum.activations += layer.activations;
    sum.bitops += layer.bitops;
    sum.ebops += layer.ebops;
    sum.ebops_exact += layer.ebops_exact;
    sum.operand_bits += layer.operand_bits;
    sum.weight_memory += layer.weight_memory;
    sum.activation_memory += layer.activation_memory;
  }
  sum.weight_bits = average_weight_bits();
  sum.activation_bits = average_activation_bits();
  return sum;
}

double NetworkCost::average_weight_bits() const { return weighted(layers, true, false); }
double NetworkCost::average_activation_bits() const { return weighted(layers, false, true); }
double NetworkCost::memory_density() const { return 32 / weighted(layers, true, true); }

Value NetworkCost::to_value() const {
  List list;
  for (const LayerCost& layer : layers) list.push_back(layer_value(layer));
  const LayerCost sum = total();
  return Dict{{"batch_size", batch_size},
              {"macs", sum.macs},
              {"flops", sum.flops},
              {"bitops", sum.bitops},
              {"ebops", sum.ebops},
              {"ebops_exact", sum.ebops_exact},
              {"operand_bits", sum.operand_bits},
              {"weight_memory_bits", sum.weight_memory},
              {"activation_memory_bits", sum.activation_memory},
              {"average_weight_bits", average_weight_bits()},
              {"average_activation_bits", average_activation_bits()},
              {"memory_density", memory_density()},
              {"layers", list}};
}

NetworkCost network_cost(const Graph& graph, int64_t batch_size) {
  NetworkCost cost;
  cost.batch_size = batch_size;
  const std::vector<Shape> shapes = infer_shapes(graph, batch_size);
  for (const NodeId id : graph.order())
    if (op_of(graph, graph.node(id)))
      cost.layers.push_back(layer_cost(graph, graph.node(id), shapes));
  return cost;
}

}  // namespace mase
