// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/quantize_nodes.h"

#include <algorithm>
#include <cmath>

#include "mase/io/onnx/read/tensor_moves.h"

namespace mase::onnx {
namespace {

struct Scales {
  std::vector<double> scales, zeros;
  std::optional<int64_t> axis;
};

int64_t axis_of(const NodeContext& context, const ScaleInputs& inputs, const Sizes& shape) {
  return context.checked_axis(inputs.axis, shape.size());
}

// Numbers for the whole tensor or along one axis.
Scales read_scales(const NodeContext& context, const Sizes& shape, const ScaleInputs& inputs) {
  Scales result;
  result.scales = context.numbers(inputs.scale, "the scale");
  result.zeros = context.has(inputs.zero) ? context.numbers(inputs.zero, "the zero point")
                                          : std::vector<double>(result.scales.size(), 0);
  if (result.scales.empty()) context.fail("it has no scale");
  for (const double scale : result.scales)
    if (!(scale > 0) || !std::isfinite(scale))
      context.fail(fmt::format("a scale of {}", scale), "scales are positive numbers");
  if (result.zeros.size() != result.scales.size())
    context.fail(
        fmt::format("{} scales and {} zero points", result.scales.size(), result.zeros.size()));
  if (result.scales.size() == 1) return result;
  const int64_t axis = axis_of(context, inputs, shape);
  if (shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("the entries of the batch have scales of their own");
  if (shape[static_cast<size_t>(axis)] != static_cast<int64_t>(result.scales.size()))
    context.fail(fmt::format("{} scales along axis {} of {}", result.scales.size(), axis,
                             shape_text(shape)));
  result.axis = axis;
  return result;
}

struct FloatType {
  int exponent, mantissa;
  double bias, largest;
  const char* infinite;  // the format that has infinities; null: there are none
};

// Floats narrower than float32; those as wide lose nothing.
std::optional<FloatType> narrow_float(Element element) {
  switch (element) {
    case Element::f16:
      return FloatType{5, 10, 15, 65504, "half"};
    case Element::bf16:
      return FloatType{8, 7, 127, 0x1.FEp127, "bfloat16"};
    case Element::f8e4m3fn:
      return FloatType{4, 3, 7, 448, nullptr};
    case Element::f8e4m3fnuz:
      return FloatType{4, 3, 8, 240, nullptr};
    case Element::f8e5m2:
      return FloatType{5, 2, 15, 57344, "e5m2"};
    case Element::f8e5m2fnuz:
      return FloatType{5, 2, 16, 57344, nullptr};
    case Element::f4e2m1:
      return FloatType{2, 1, 1, 6, nullptr};
    default:
      return {};
  }
}

// Of a matrix whose blocks are whole.
std::optional<OperandFormat> block_format(NodeContext& context, const Operand& x,
                                          const ScaleInputs& inputs, const IntegerRange& range) {
  const Operand& scale = context.input(inputs.scale);
  if (x.rank() != 2 || scale.rank() != 2 || !scale.is_constant()) return {};
  const int64_t axis = axis_of(context, inputs, x.shape);
  const auto at = static_cast<size_t>(axis), other = 1 - at;
  const int64_t blocks = scale.shape[at];
  if (blocks * inputs.block != x.shape[at] || scale.shape[other] != x.shape[other]) return {};
  const std::vector<double> scales = context.numbers(inputs.scale, "the scale");
  std::vector<double> zeros;
  if (context.has(inputs.zero)) zeros = context.numbers(inputs.zero, "the zero point");
  if (!zeros.empty() && zeros.size() != scales.size()) return {};
  AffineFormat format{.scales = {}, .zeros = {}, .axis = axis, .block = inputs.block};
  format.zero_first = false;
  for (int64_t i = 0; i < x.shape[other]; ++i)
    for (int64_t k = 0; k < blocks; ++k) {
      const auto place = static_cast<size_t>(axis == 1 ? i * blocks + k : k * x.shape[other] + i);
      if (!(scales[place] > 0) || !std::isfinite(scales[place])) return {};
      format.scales.push_back(scales[place]);
      format.zeros.push_back(zeros.empty() ? 0 : zeros[place]);
    }
  return affine_format(ranged(format, range.lowest, range.largest, context.place()));
}

bool is_simple(const NodeContext& context, const ScaleInputs& inputs) {
  return inputs.block == 0 && context.input(inputs.scale).is_constant() &&
         context.input(inputs.scale).rank() <= 1 &&
         (!context.has(inputs.zero) || context.input(inputs.zero).is_constant());
}

}  // namespace

std::optional<OperandFormat> float_format(Element element, bool saturates) {
  const auto type = narrow_float(element);
  if (!type) return {};
  if (type->infinite && !saturates)
    return OperandFormat{.name = type->infinite, .keys = Dict{{"overflow", "infinity"}}};
  return OperandFormat{.name = "scaled_float",
                       .keys = Dict{{"exponent_width", type->exponent},
                                    {"mantissa_width", type->mantissa},
                                    {"exponent_bias", type->bias},
                                    {"max_value", type->largest},
                                    {"saturation", saturates}}};
}

bool holds(Element wide, Element narrow) {
  const auto a = narrow_float(wide), b = narrow_float(narrow);
  if (!a) return true;
  return b && a->exponent >= b->exponent && a->mantissa >= b->mantissa && a->bias >= b->bias;
}

std::optional<IntegerRange> integer_range(Element element) {
  switch (element) {
    case Element::i2:
      return IntegerRange{-2, 1};
    case Element::u2:
      return IntegerRange{0, 3};
    case Element::i4:
      return IntegerRange{-8, 7};
    case Element::u4:
      return IntegerRange{0, 15};
    case Element::i8:
      return IntegerRange{-128, 127};
    case Element::u8:
      return IntegerRange{0, 255};
    case Element::i16:
      return IntegerRange{-32768, 32767};
    case Element::u16:
      return IntegerRange{0, 65535};
    default:
      return {};
  }
}

Operand wrapped(NodeContext& context, const Operand& given, Element element) {
  const auto range = integer_range(element);
  if (!range || given.is_constant()) return given;
  const double span = range->largest - range->lowest + 1;
  Operand from = given;
  if (range->lowest < 0) from = context.call("sub", {given, context.scalar(range->lowest)});
  const Operand turns =
      context.call("floor", {context.call("mul", {from, context.scalar(1 / span)})});
  Operand x = context.call("sub", {given, context.call("mul", {turns, context.scalar(span)})});
  x.element = element;
  return x;
}

Operand spread(NodeContext& context, const Operand& numbers, const Sizes& shape,
               const ScaleInputs& inputs) {
  const bool one = element_count(numbers.shape) == 1;
  if (one && numbers.rank() == 0) return numbers;
  if (one && numbers.is_constant()) return context.reshape(numbers, {});
  if (inputs.block == 0 && numbers.rank() == 1) {
    Sizes ones(shape.size(), 1);
    ones[static_cast<size_t>(axis_of(context, inputs, shape))] = numbers.shape[0];
    return context.reshape(numbers, ones);
  }
  if (inputs.block == 0) return numbers;
  // One for each block of an axis: each repeated for the values of its block.
  if (!numbers.is_constant() || numbers.rank() != shape.size())
    context.fail("scales of blocks that are computed while the network runs");
  const int64_t axis = axis_of(context, inputs, shape);
  if (shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("the batch is divided into blocks");
  const int64_t size = shape[static_cast<size_t>(axis)];
  std::vector<int64_t> places;
  constexpr int64_t most = int64_t{1} << 26;
  if (size > most) context.fail("too many values are divided into blocks");
  for (int64_t i = 0; i < size; ++i) places.push_back(i / inputs.block);
  if (size > 0 && places.back() >= numbers.shape[static_cast<size_t>(axis)])
    context.fail(fmt::format("{} scales for {} values in blocks of {}",
                             numbers.shape[static_cast<size_t>(axis)], size, inputs.block));
  const Tensor& tensor = numbers.constant->tensor;
  const int64_t entry =
      tensor.numel() / std::max<int64_t>(1, numbers.shape[static_cast<size_t>(axis)]);
  context.model().budget->charge(static_cast<size_t>(std::min(entry, most) * size) * 8,
                                 context.place());
  return context.like(numbers, gathered(tensor, axis, places, Shape{size}));
}

Operand quantized(NodeContext& context, const Operand& x, const ScaleInputs& inputs,
                  Element element) {
  if (x.codes) context.fail("integers are quantised again");
  const auto range = integer_range(element);
  if (range && is_simple(context, inputs)) {
    const Scales given = read_scales(context, x.shape, inputs);
    Codes codes{.lowest = range->lowest, .largest = range->largest};
    if (x.is_constant())
      codes.constant = context.materialized(x).constant;
    else
      codes.node = x.node;
    codes.format.scales = given.scales;
    codes.format.zeros = given.zeros;
    codes.format.axis = given.axis;
    codes.format.zero_first = false;
    Operand result{.shape = x.shape, .element = element};
    result.source = x.source;
    result.codes = std::make_shared<const Codes>(std::move(codes));
    return result;
  }
  const Operand steps =
      context.call("div", {x, spread(context, context.input(inputs.scale), x.shape, inputs)});
  Operand result;
  if (const auto format = float_format(element, context.integer("saturate", 1) != 0)) {
    result = context.materialized(context.rounded(steps, *format));
  } else {
    if (!range) context.fail(fmt::format("quantised to {}", element_name(element)));
    result = context.materialized(context.rounded(steps, affine_format({.width = 24})));
    if (context.has(inputs.zero))
      result = context.call("add",
                            {result, spread(context, context.input(inputs.zero), x.shape, inputs)});
    result = context.call("clamp", {result}, Dict{{"min", range->lowest}, {"max", range->largest}});
  }
  result.element = element;
  return result;
}

Operand dequantized(NodeContext& context, const Operand& x, const ScaleInputs& inputs) {
  const auto range = integer_range(x.element);
  if (is_simple(context, inputs) && (x.codes || (x.is_constant() && range))) {
    const Scales given = read_scales(context, x.shape, inputs);
    if (x.codes && given.scales == x.codes->format.scales && given.zeros == x.codes->format.zeros &&
        given.axis == x.codes->format.axis) {
      const Codes& codes = *x.codes;
      const OperandFormat format =
          affine_format(ranged(codes.format, codes.lowest, codes.largest, context.place()));
      Operand from{.node = codes.node, .constant = codes.constant, .shape = x.shape};
      from.source = x.source;
      return context.rounded(from, format);
    }
  }
  const Operand numbers = context.as_numbers(x);
  Operand result = numbers;
  if (numbers.is_constant())
    result = context.constant_operand(numbers.constant->tensor.to(DType::f32));
  result.element = Element::f32;
  if (context.has(inputs.zero)) {
    Operand zero = spread(context, context.input(inputs.zero), x.shape, inputs);
    if (zero.is_constant()) zero = context.constant_operand(zero.constant->tensor.to(DType::f32));
    result = context.call("sub", {result, zero});
  }
  Operand scale = spread(context, context.input(inputs.scale), x.shape, inputs);
  if (scale.is_constant()) scale = context.constant_operand(scale.constant->tensor.to(DType::f32));
  // In single precision, as executors multiply.
  result = context.call("mul", {result, scale});
  result.source = x.source;
  if (range && result.is_constant() && inputs.block > 0)
    result.format = block_format(context, x, inputs, *range);
  if (range && result.is_constant() && is_simple(context, inputs)) {
    const Scales given = read_scales(context, x.shape, inputs);
    const AffineFormat format{
        .scales = given.scales, .zeros = given.zeros, .axis = given.axis, .zero_first = false};
    result.format = affine_format(ranged(format, range->lowest, range->largest, context.place()));
  }
  return result;
}

Operand centred(NodeContext& context, const Operand& x, size_t zero, int64_t axis) {
  const ScaleInputs inputs{.scale = zero, .zero = zero, .axis = axis};
  const bool fixed = !context.has(zero) || context.input(zero).is_constant();
  std::vector<double> zeros = {0};
  if (context.has(zero) && fixed) zeros = context.numbers(zero, "the zero point");
  const bool alike = !zeros.empty() && std::all_of(zeros.begin(), zeros.end(),
                                                   [&](double z) { return z == zeros[0]; });
  const auto range = integer_range(x.element);
  if (x.codes && fixed && alike && x.codes->node >= 0 && !x.codes->format.axis &&
      x.codes->format.zeros[0] == zeros[0]) {
    const Codes& codes = *x.codes;
    Operand steps{.node = codes.node, .shape = x.shape};
    if (codes.format.scales[0] != 1)
      steps = context.call("div", {steps, context.scalar(codes.format.scales[0])});
    AffineFormat unit = ranged(codes.format, codes.lowest, codes.largest, context.place());
    unit.scales = {1};
    return context.rounded(steps, affine_format(unit));
  }
  Operand result = context.as_numbers(x);
  if (result.is_constant()) {
    const std::string source = x.source;
    result = context.constant_operand(result.constant->tensor.to(DType::f32));
    result.source = source;
  }
  result.element = Element::f32;
  if (context.has(zero) && (!fixed || !alike || zeros[0] != 0)) {
    Operand numbers = spread(context, context.input(zero), x.shape, inputs);
    if (numbers.is_constant())
      numbers = context.constant_operand(numbers.constant->tensor.to(DType::f32));
    result = context.call("sub", {result, numbers});
    result.source = x.source;
  }
  if (result.is_constant() && range && fixed && alike)
    result.format = affine_format(ranged({.zeros = {zeros[0]}, .zero_first = false}, range->lowest,
                                         range->largest, context.place()));
  return result;
}

}  // namespace mase::onnx
