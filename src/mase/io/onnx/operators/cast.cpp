// SPDX-License-Identifier: Apache-2.0
// Cast: the type of the numbers. What a network computes is held in single precision; narrower
// types are number formats.
#include <cmath>

#include "mase/base/text.h"
#include "mase/io/onnx/read/quantize_nodes.h"

namespace mase::onnx::cast_operators {
namespace {

// Saturating is for the eight-bit types alone; four bits have nothing else.
std::optional<OperandFormat> format_of(const NodeContext& context, Element to) {
  const bool wide = to == Element::f16 || to == Element::bf16;
  return float_format(to, to == Element::f4e2m1 || (!wide && context.integer("saturate", 1) != 0));
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
  if (const auto format = format_of(context, to);
      dtype == DType::f32 && format && !holds(to, x.element))
    cast = round_tensor(*format, cast, context.place());
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
  if (context.value(0).sizes && !is_real(to) && to != Element::boolean) {  // a size fits any type
    Operand sizes = context.value(0);
    sizes.element = to;
    return context.result(0, sizes);
  }
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
    if (const auto format = format_of(context, to); format && !holds(to, from))
      x = context.rounded(x, *format);
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
     .repeated = OnnxOperator::Repeated::broadcasting,
     .convert = cast}};

}  // namespace
}  // namespace mase::onnx::cast_operators
