// SPDX-License-Identifier: Apache-2.0
// Cast: the type of the numbers. What a network computes is held in single precision; narrower
// types are number formats.
#include <cmath>

#include "mase/base/text.h"
#include "mase/io/onnx/quantize_nodes.h"

namespace mase::onnx::cast_operators {
namespace {

struct FloatType {
  int exponent, mantissa;
  double bias, largest;
  bool infinite;
};

// Floats narrower than float32; those as wide lose nothing.
std::optional<FloatType> narrow_float(Element element) {
  switch (element) {
    case Element::f16:
      return FloatType{5, 10, 15, 65504, true};
    case Element::bf16:
      return FloatType{8, 7, 127, 0x1.FEp127, true};
    case Element::f8e4m3fn:
      return FloatType{4, 3, 7, 448, false};
    case Element::f8e4m3fnuz:
      return FloatType{4, 3, 8, 240, false};
    case Element::f8e5m2:
      return FloatType{5, 2, 15, 57344, true};
    case Element::f8e5m2fnuz:
      return FloatType{5, 2, 16, 57344, false};
    case Element::f4e2m1:
      return FloatType{2, 1, 1, 6, false};
    default:
      return {};
  }
}

// Whether every number of one is one of the other.
bool holds(Element wide, Element narrow) {
  const auto a = narrow_float(wide), b = narrow_float(narrow);
  if (!a) return true;
  return b && a->exponent >= b->exponent && a->mantissa >= b->mantissa && a->bias >= b->bias;
}

OperandFormat float_format(const NodeContext& context, Element to) {
  const FloatType type = *narrow_float(to);
  // Saturating is for the eight-bit types alone; four bits have nothing else.
  const bool wide = to == Element::f16 || to == Element::bf16;
  const bool saturates = to == Element::f4e2m1 || (!wide && context.integer("saturate", 1) != 0);
  if (type.infinite && !saturates)
    return {.name = to == Element::f16    ? "half"
                    : to == Element::bf16 ? "bfloat16"
                                          : "e5m2",
            .keys = Dict{{"overflow", "infinity"}}};
  return {.name = "scaled_float",
          .keys = Dict{{"exponent_width", type.exponent},
                       {"mantissa_width", type.mantissa},
                       {"exponent_bias", type.bias},
                       {"max_value", type.largest},
                       {"saturation", saturates},
                       {"has_infinity", type.infinite}}};
}

struct IntegerType {
  int width;
  bool is_signed;
};

std::optional<IntegerType> narrow_integer(Element element) {
  switch (element) {
    case Element::u2:
      return IntegerType{2, false};
    case Element::i2:
      return IntegerType{2, true};
    case Element::u4:
      return IntegerType{4, false};
    case Element::i4:
      return IntegerType{4, true};
    case Element::u8:
      return IntegerType{8, false};
    case Element::i8:
      return IntegerType{8, true};
    case Element::u16:
      return IntegerType{16, false};
    case Element::i16:
      return IntegerType{16, true};
    default:
      return {};
  }
}

// Whether a real number can become one of this type.
bool fits(DType dtype, double value) {
  const auto bits = static_cast<int>(8 * dtype_size(dtype));
  const bool is_signed =
      dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  const double limit = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  return value < limit && value > (is_signed ? -limit - 1 : -1.0);
}

Operand cast_constant(NodeContext& context, const Operand& x, Element to, DType dtype) {
  const Tensor from = context.materialized(x).constant->tensor;
  if (is_real(x.element) && !is_real(to) && to != Element::boolean)
    for (int64_t i = 0; i < from.numel(); ++i)
      if (!fits(dtype, from.item(i)))
        context.fail(fmt::format("{} is no {}", from.item(i), element_name(to)));
  Tensor cast = from.to(dtype);
  if (dtype == DType::f32 && narrow_float(to) && !holds(to, x.element))
    cast = round_tensor(float_format(context, to), cast, context.place());
  Operand result = context.constant_operand(cast);
  result.element = result.constant->element = to;
  result.source = x.source;
  return result;
}

void cast(NodeContext& context) {
  const auto to = context.node().op == "CastLike" ? context.input(1).element
                                                  : static_cast<Element>(context.integer("to", 1));
  const auto dtype = dtype_of(to);
  if (!dtype || to == Element::f8e8m0)
    context.fail(fmt::format("cannot cast to {}", element_name(to)));
  Operand x = context.input(0);
  if (to == x.element) return context.result(0, x);
  if (x.is_constant()) return context.result(0, cast_constant(context, x, to, *dtype));
  x = context.as_numbers(x);
  const Element from = x.element;
  if (to == Element::boolean) {
    x = context.call("ne", {x, context.scalar(0)});
  } else if (is_real(to)) {
    if (to == Element::f4e2m1)  // it has no NaN
      x = context.call("where", {context.call("ne", {x, x}), context.scalar(0), x});
    if (narrow_float(to) && !holds(to, from)) x = context.rounded(x, float_format(context, to));
  } else if (const auto type = narrow_integer(to)) {
    const auto own = narrow_integer(from);
    if (is_real(from) && type->width < 8)
      x = wrapped(context, context.call("trunc", {x}), to);
    else if (is_real(from))
      x = context.rounded(x, affine_format({.width = type->width,
                                            .is_signed = type->is_signed,
                                            .rounding = Rounding::toward_zero}));
    else if (from != Element::boolean &&
             !(own && own->width + (type->is_signed && !own->is_signed) <= type->width &&
               (type->is_signed || !own->is_signed)))
      context.fail(
          fmt::format("{} become {} while the network runs", element_name(from), element_name(to)));
  } else if (is_real(from)) {
    x = context.call("trunc", {x});
  }
  x.element = to;
  context.result(0, x);
}

const Register<OnnxOperator> registered{
    {.name = "Cast",
     .aliases = {"CastLike"},
     .summary = "a number format where numbers get narrower, else nothing",
     .convert = cast}};

}  // namespace
}  // namespace mase::onnx::cast_operators
