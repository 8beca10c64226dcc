// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/costs.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "mase/formats/measure.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/ir/typed_graph.h"
#include "mase/passes/metadata.h"

namespace mase {
namespace {

double bits_of(const Quantizer* quantizer, const Shape& shape) {
  return quantizer ? quantizer->bits_per_value(shape) : 32;
}

// Bits of an operand's codes, without what a block or a row shares.
struct OperandBits {
  std::vector<double> per_group;  // one for all values, or one for each group
  Grouping groups;

  double at(int64_t value) const {
    if (per_group.size() == 1) return per_group[0];
    return per_group[static_cast<size_t>(value / groups.inner % groups.groups)];
  }
  std::vector<double> each(int64_t values) const {
    std::vector<double> bits;
    for (int64_t i = 0; i < values; ++i) bits.push_back(at(i));
    return bits;
  }
  bool uniform() const { return per_group.size() == 1; }
  double mean() const {
    double sum = 0;
    for (const double bits : per_group) sum += bits;
    return sum / static_cast<double>(per_group.size());
  }
};

// `multiplied`: HGQ2 leaves out the sign where numbers wrap, since a saturating cast needs it and a
// cut does not.
OperandBits operand_bits(const Quantizer* quantizer, const Shape& shape, bool multiplied) {
  OperandBits result{{32}, {}};
  if (!quantizer) return result;
  if (!quantizer->type) {
    result.per_group = {bits_of(quantizer, shape)};
    return result;
  }
  const NumberType& type = *quantizer->type;
  const Fixed* fixed = type.as<Fixed>();
  if (!fixed) {
    result.per_group = {static_cast<double>(code_width(type))};
    return result;
  }
  result.per_group.clear();
  result.groups = grouping(shape, type.granularity);
  for (int64_t g = 0; g < group_count(*fixed); ++g) {
    const Fixed one = fixed_at(*fixed, g);
    const bool signless = multiplied && one.is_signed && one.overflow == Overflow::wrap;
    result.per_group.push_back(std::max(0, one.width - (signless ? 1 : 0)));
  }
  return result;
}

// The bits each value of a weight really needs, never more than its type counts: -2^n has one bit,
// and none beside the sign of a type that ends there. What has no number type has no codes to look
// into, and counts its width.
std::vector<double> exact_bits(const Quantizer* quantizer, const Tensor& weight,
                               const OperandBits& widths) {
  std::vector<double> bits;
  std::vector<float> elements;
  if (quantizer && quantizer->type) elements = code_elements(*quantizer, weight);
  for (int64_t i = 0; i < weight.numel(); ++i)
    bits.push_back(
        elements.empty()
            ? widths.at(i)
            : std::min<double>(widths.at(i), significant_bits(elements[static_cast<size_t>(i)])));
  return bits;
}

// The sum over a weight's values of its bits times those of the input it meets. Which channel that
// is matters only where both differ from value to value; the op says where the weight's input
// channels are.
double product_bits(const OpRecord& op, const Shape& shape, const std::vector<double>& weight_bits,
                    const OperandBits& input) {
  const auto features = static_cast<int64_t>(input.per_group.size());
  const auto axis = static_cast<size_t>(op.product ? op.product->in_axis : 1);
  const bool paired =
      !input.uniform() && axis < shape.size() && shape[axis] > 0 && features % shape[axis] == 0;
  const Grouping columns =
      paired ? grouping(shape, {Granularity::Kind::axis, static_cast<int64_t>(axis)}) : Grouping{};
  // The outputs of a grouped product lie before its input channels, group after group.
  const int64_t per_group = paired ? shape[axis] : 1, groups = features / per_group;
  const int64_t outputs = std::max<int64_t>(1, columns.outer / std::max<int64_t>(1, groups));
  const double mean = input.mean();
  double sum = 0;
  for (int64_t i = 0; i < element_count(shape); ++i) {
    double bits = mean;
    if (paired) {
      const int64_t group = groups > 1 ? i / columns.inner / per_group / outputs : 0;
      const int64_t channel = group * per_group + i / columns.inner % per_group;
      bits = input.per_group[static_cast<size_t>(channel)];
    }
    sum += weight_bits[static_cast<size_t>(i)] * bits;
  }
  return sum;
}

// The call's products: what the op says, or the one it is.
std::vector<ProductPart> parts_of(const Graph& graph, const Node& node, const BoundCall& call,
                                  const std::vector<Shape>& inputs, const Shape& out,
                                  int64_t macs) {
  if (call.op->product_parts) return call.op->product_parts(call.attributes, inputs);
  ProductPart part{.data = "data_in",
                   .weight = "weight",
                   .bias = "bias",
                   .in = inputs[0],
                   .macs = macs,
                   .outputs = element_count(out)};
  if (call.module && call.module->find("weight")) return {part};
  if (inputs.size() < 2) return {};
  part.weight = operand_of_input(graph, node, 1);
  part.other = inputs[1];
  return {part};
}

// The part's rows of all values.
std::vector<double> rows_of(const std::vector<double>& values, const ProductPart& part,
                            int64_t all_rows) {
  if (part.rows == 0) return values;
  const auto row = static_cast<std::ptrdiff_t>(values.size()) / std::max<int64_t>(1, all_rows);
  return {values.begin() + part.first * row, values.begin() + (part.first + part.rows) * row};
}

double precision_sum(const Quantizer* quantizer) {
  if (!quantizer || quantizer->precision.empty()) return 32;
  double sum = 0;
  for (const auto part : quantizer->precision) sum += static_cast<double>(part);
  return sum;
}

// Adds one product to the cost of its layer. Bits of operands are sums here, not yet averages.
void add_product(LayerCost& cost, const BoundCall& call, const Quantization& formats,
                 const ProductPart& part, int64_t batch, bool constant) {
  const Quantizer* first = formats.find(part.data);
  const OperandBits input = operand_bits(first, part.in, true);
  const double macs = static_cast<double>(part.macs), samples = static_cast<double>(batch);
  const double data_bits = bits_of(first, part.in);
  const Tensor* weight = call.module ? call.module->find(part.weight) : nullptr;
  const Tensor* bias = call.module ? call.module->find(part.bias) : nullptr;
  double nominal = 0, exact = 0;  // bits of all products of a sample
  double weight_bits = 32;
  int64_t weights = 0;
  if (weight) {
    const QuantizerPtr quantizer = current_quantizer(formats, call.module, part.weight);
    const int64_t all_rows = weight->shape()[0], all = weight->numel();
    Shape shape = weight->shape();
    if (part.rows > 0) shape[0] = part.rows;
    weights = element_count(shape);
    weight_bits = bits_of(quantizer.get(), weight->shape());
    cost.precision_sums += precision_sum(quantizer.get()) * static_cast<double>(weights);
    const double uses = weights > 0 ? macs / samples / static_cast<double>(weights) : 0;  // of each
    const auto bits = [&](const std::vector<double>& of_all, const OperandBits& data) {
      return product_bits(*call.op, shape, rows_of(of_all, part, all_rows), data) * uses;
    };
    const OperandBits widths = operand_bits(quantizer.get(), weight->shape(), true);
    nominal = bits(widths.each(all), input);
    exact = bits(exact_bits(quantizer.get(), *weight, widths), input);
    const OperandBits stored = operand_bits(quantizer.get(), weight->shape(), false);
    const OperandBits stored_input = operand_bits(first, part.in, false);
    cost.bitops += stored.uniform() && stored_input.uniform()
                       ? macs * weight_bits * data_bits
                       : bits(stored.each(all), stored_input) * samples;
  } else {  // a product of two activations: the second stands for weights
    const Quantizer* second = formats.find(part.weight);
    weights = element_count(part.other);
    weight_bits = bits_of(second, part.other);
    cost.precision_sums += precision_sum(second) * static_cast<double>(weights);
    nominal = exact = macs / samples * operand_bits(second, part.other, true).mean() * input.mean();
    cost.bitops += macs * weight_bits * data_bits;
  }
  // HGQ2 adds, for each output, the bits of its bias.
  double bias_term = 0;
  if (bias) {
    const std::vector<double> own =
        rows_of(operand_bits(formats.find(part.bias), bias->shape(), true).each(bias->numel()),
                part, bias->shape()[0]);
    double sum = 0;
    for (const double bits : own) sum += bits;
    cost.bias_bits = sum / static_cast<double>(std::max<size_t>(1, own.size()));
    bias_term = cost.bias_bits * static_cast<double>(part.outputs) / samples;
  }
  cost.ebops += nominal + bias_term;
  cost.ebops_exact += exact + bias_term;
  // What another layer computed is no weight, whichever side of a product it stands on.
  const bool stand_in = !weight && (call.op->product_parts || !constant);
  (stand_in ? cost.activations : cost.weights) += weights;
  (stand_in ? cost.activation_bits : cost.weight_bits) +=
      weight_bits * static_cast<double>(weights);
  cost.activations += element_count(part.in);
  cost.precision_sums += precision_sum(first) * static_cast<double>(element_count(part.in));
  cost.activation_bits += data_bits * static_cast<double>(element_count(part.in));
}

LayerCost layer_cost(const BoundGraph& bound, const Node& node, const std::vector<Shape>& shapes,
                     int64_t batch) {
  const Graph& graph = bound.graph();
  LayerCost cost;
  cost.name = node.name;
  cost.op = mase_op(graph, node);
  cost.type = class_text(graph, node);
  const BoundCall& call = bound.own_call(node.id);
  const Quantization& formats = graph.quantization_of(node);
  std::vector<Shape> inputs;
  for (const NodeId id : call.inputs) inputs.push_back(shapes[static_cast<size_t>(id)]);
  const Shape& out = shapes[static_cast<size_t>(node.id)];
  if (call.op->cost) {
    const OpCost op = call.op->cost(call.attributes, inputs, out);
    cost.macs = op.macs;
    cost.flops = op.flops;
  }
  cost.activation_memory =
      static_cast<double>(element_count(out)) * bits_of(formats.find("data_out"), out);
  if (call.module) {
    const std::vector<LearnedOperand> learned = learned_operands(*call.module);
    for (const auto& [name, tensor] : call.module->parameters) {
      // A learned number is part of its operand's format, whose bits count it.
      const bool counted = std::any_of(
          learned.begin(), learned.end(),
          [&, &name = name](const LearnedOperand& number) { return number.parameter == name; });
      if (!counted)
        cost.weight_memory +=
            static_cast<double>(tensor.numel()) * bits_of(formats.find(name), tensor.shape());
    }
  }
  if (!cost.is_product()) {
    cost.activation_bits = inputs.empty() ? 32 : bits_of(formats.find("data_in"), inputs[0]);
    return cost;
  }
  cost.weight_bits = cost.activation_bits = 0;
  const bool constant =
      call.inputs.size() > 1 && graph.node(call.inputs[1]).kind == NodeKind::get_attr;
  for (const ProductPart& part : parts_of(graph, node, call, inputs, out, cost.macs))
    add_product(cost, call, formats, part, std::max<int64_t>(1, batch), constant);
  cost.operand_bits = cost.activation_bits + cost.weight_bits;
  const auto average = [](double bits, int64_t values) {
    return values > 0 ? bits / static_cast<double>(values) : 32;
  };
  cost.weight_bits = average(cost.weight_bits, cost.weights);
  cost.activation_bits = average(cost.activation_bits, cost.activations);
  return cost;
}

constexpr CostQuantity quantities[] = {
    {"macs", "MACs", false, &LayerCost::macs},
    {"flops", "FLOPs", false, &LayerCost::flops},
    {"bitops", "BitOPs", false, &LayerCost::bitops},
    {"ebops", "EBOPs per sample", true, &LayerCost::ebops},
    {"ebops_exact", "EBOPs per sample, exact", true, &LayerCost::ebops_exact},
    {"operand_bits", "Operand bits", false, &LayerCost::operand_bits},
    {"weight_memory_bits", "Weight memory (bits)", true, &LayerCost::weight_memory},
    {"activation_memory_bits", "Memory of all results (bits)", false,
     &LayerCost::activation_memory},
};

Value layer_value(const LayerCost& cost) {
  Dict result{{"name", cost.name},
              {"op", cost.op},
              {"type", cost.type},
              {"weights", cost.weights},
              {"weight_bits", cost.weight_bits},
              {"activation_bits", cost.activation_bits}};
  for (const CostQuantity& quantity : quantities) result.set(quantity.key, quantity.value(cost));
  return result;
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

int significant_bits(float value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  int exponent = 0;
  const auto bits = static_cast<uint32_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 24));
  return std::bit_width(bits) - std::countr_zero(bits);
}

std::span<const CostQuantity> cost_quantities() { return quantities; }

double CostQuantity::of(const LayerCost& cost) const {
  return std::visit([&](const auto at) { return static_cast<double>(cost.*at); }, member);
}

Value CostQuantity::value(const LayerCost& cost) const {
  return std::visit([&](const auto at) { return Value(cost.*at); }, member);
}

LayerCost NetworkCost::total() const {
  LayerCost sum;
  sum.name = "total";
  for (const LayerCost& layer : layers) {
    for (const CostQuantity& quantity : quantities)
      std::visit([&](const auto at) { sum.*at += layer.*at; }, quantity.member);
    sum.precision_sums += layer.precision_sums;
    sum.weights += layer.weights;
    sum.activations += layer.activations;
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
  Dict result{{"batch_size", batch_size}};
  for (const CostQuantity& quantity : quantities) result.set(quantity.key, quantity.value(sum));
  result.set("average_weight_bits", average_weight_bits());
  result.set("average_activation_bits", average_activation_bits());
  result.set("memory_density", memory_density());
  result.set("layers", list);
  return result;
}

NetworkCost network_cost(const Graph& graph, int64_t batch_size) {
  NetworkCost cost;
  cost.batch_size = batch_size;
  const BoundGraph bound(graph);
  const std::vector<Shape> shapes = bound.shapes(batch_size);
  for (const NodeId id : graph.order())
    if (op_of(graph, graph.node(id)))
      cost.layers.push_back(layer_cost(bound, graph.node(id), shapes, batch_size));
  return cost;
}

}  // namespace mase
