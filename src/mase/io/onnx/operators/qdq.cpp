// SPDX-License-Identifier: Apache-2.0
// ONNX's own quantisers. A QuantizeLinear and a DequantizeLinear with the same scale, a Clip
// between them or not, are one number format:
//
//   QuantizeLinear -> [Clip] -> DequantizeLinear   =>   affine numbers of an operand
//
// Constant integers become their values, and the format of the layer that takes them.
#include <cmath>

#include "mase/io/onnx/operator.h"

namespace mase::onnx::qdq_operators {
namespace {

struct IntegerRange {
  double lowest, largest;
};

std::optional<IntegerRange> range_of(Element element) {
  switch (element) {
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

struct Scales {
  std::vector<double> scales, zeros;
  std::optional<int64_t> axis;
};

// Inputs 1 and 2 for a tensor of this shape.
Scales read_scales(const NodeContext& context, const Shape& shape) {
  Scales result;
  result.scales = context.numbers(1, "the scale");
  result.zeros = context.has(2) ? context.numbers(2, "the zero point")
                                : std::vector<double>(result.scales.size(), 0);
  for (const double scale : result.scales)
    if (!(scale > 0) || !std::isfinite(scale))
      context.fail(fmt::format("a scale of {}", scale), "scales are positive numbers");
  if (result.zeros.size() != result.scales.size())
    context.fail(
        fmt::format("{} scales and {} zero points", result.scales.size(), result.zeros.size()));
  if (result.scales.size() == 1) return result;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = context.integer("axis", 1);
  if (axis < -rank || axis >= rank)
    context.fail(fmt::format("axis {} of {} dimensions", axis, rank));
  if (axis < 0) axis += rank;
  if (shape[static_cast<size_t>(axis)] != static_cast<int64_t>(result.scales.size()))
    context.fail(fmt::format("{} scales along axis {} of {}", result.scales.size(), axis,
                             shape_text(shape)));
  result.axis = axis;
  return result;
}

void quantize_linear(NodeContext& context) {
  const Operand& x = context.input(0);
  if (x.codes) context.fail("integers are quantised again");
  if (context.integer("block_size", 0) != 0) context.fail("scales for blocks of values");
  Element element = Element::u8;
  if (context.has(2))
    element = context.input(2).element;
  else if (context.integer("output_dtype", 0) != 0)
    element = static_cast<Element>(context.integer("output_dtype", 0));
  const auto range = range_of(element);
  if (!range) context.fail(fmt::format("quantised to {}", element_name(element)));
  const Scales given = read_scales(context, x.shape);
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
  context.result(0, result);
}

// The width whose range this is.
AffineFormat with_width(const NodeContext& context, AffineFormat format, double lowest,
                        double largest) {
  format.is_signed = lowest < 0;
  for (int width = 1; width <= 24; ++width) {
    const int bits = width - (format.is_signed ? 1 : 0);
    const double top = std::ldexp(1.0, bits) - 1;
    const double bottom = format.is_signed ? -top - 1 : 0;
    for (const bool narrow : {false, true}) {
      const double low = narrow && format.is_signed ? bottom + 1 : bottom;
      const double high = narrow && !format.is_signed ? top - 1 : top;
      if (low != lowest || high != largest) continue;
      format.width = width;
      format.narrow = narrow;
      return format;
    }
  }
  context.fail(fmt::format("integers from {} to {} have no width", lowest, largest));
}

Tensor dequantized(const NodeContext& context, const Tensor& codes, int64_t block) {
  const std::vector<double> scales = context.numbers(1, "the scale");
  const std::vector<double> zeros =
      context.has(2) ? context.numbers(2, "the zero point") : std::vector<double>();
  const Shape& shape = codes.shape();
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = context.integer("axis", 1);
  if (axis < 0) axis += rank;
  if (scales.size() > 1 && (axis < 0 || axis >= rank))
    context.fail(fmt::format("axis {} of {} dimensions", axis, rank));
  int64_t inner = 1, size = 1;
  if (scales.size() > 1) {
    size = shape[static_cast<size_t>(axis)];
    for (int64_t i = axis + 1; i < rank; ++i) inner *= shape[static_cast<size_t>(i)];
  }
  const int64_t blocks = block > 0 ? (size + block - 1) / block : size;
  const int64_t wanted = scales.size() == 1 ? 1
                         : block > 0        ? (size == 0 ? 0 : codes.numel() / size * blocks)
                                            : size;
  if (static_cast<int64_t>(scales.size()) != wanted ||
      (!zeros.empty() && zeros.size() != scales.size()))
    context.fail(fmt::format("{} scales and {} zero points for {}", scales.size(), zeros.size(),
                             shape_text(shape)));
  Tensor values(shape);
  float* out = values.mutable_data<float>();
  for (int64_t i = 0; i < codes.numel(); ++i) {
    int64_t at = 0;
    if (scales.size() > 1) {
      const int64_t entry = i / inner % size;
      at = block > 0 ? (i / inner / size * blocks + entry / block) * inner + i % inner : entry;
    }
    const double zero = zeros.empty() ? 0 : zeros[static_cast<size_t>(at)];
    out[i] = static_cast<float>(codes.item(i) - zero) *
             static_cast<float>(scales[static_cast<size_t>(at)]);
  }
  return values;
}

void dequantize_linear(NodeContext& context) {
  const Operand& x = context.input(0);
  const int64_t block = context.integer("block_size", 0);
  if (x.codes) {
    const Codes& codes = *x.codes;
    const Scales given = read_scales(context, x.shape);
    if (given.scales != codes.format.scales || given.zeros != codes.format.zeros ||
        given.axis != codes.format.axis || block != 0)
      context.fail("the integers get another scale than they were made with");
    const OperandFormat format =
        affine_format(with_width(context, codes.format, codes.lowest, codes.largest));
    Operand from{.node = codes.node, .constant = codes.constant, .shape = x.shape};
    from.source = x.source;
    return context.result(0, context.rounded(from, format));
  }
  const Tensor& codes = context.constant(0, "what is dequantised");
  Operand result = context.constant_operand(dequantized(context, codes, block));
  result.source = x.source;
  const auto range = range_of(x.element);
  if (range && block == 0) {
    const Scales given = read_scales(context, x.shape);
    AffineFormat format{
        .scales = given.scales, .zeros = given.zeros, .axis = given.axis, .zero_first = false};
    result.format = affine_format(with_width(context, format, range->lowest, range->largest));
  } else if (range) {
    context.note(fmt::format("{}: {} with a scale for every {} values are kept as real numbers",
                             context.place(), element_name(x.element), block));
  }
  context.result(0, result);
}

const Register<OnnxOperator> quantize_operator{
    {.name = "QuantizeLinear",
     .aliases = {"com.microsoft::QuantizeLinear"},
     .summary = "the format 'affine' or 'integer' of an operand, with its DequantizeLinear",
     .convert = quantize_linear}};
const Register<OnnxOperator> dequantize_operator{
    {.name = "DequantizeLinear",
     .aliases = {"com.microsoft::DequantizeLinear"},
     .summary = "the format 'affine' or 'integer' of an operand",
     .convert = dequantize_linear}};

}  // namespace
}  // namespace mase::onnx::qdq_operators
