// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/dynamic_quantize.h"

#include "mase/io/onnx/read/quantize_nodes.h"

namespace mase::onnx {

void note_exactness(NodeContext& context, int64_t terms, Element a, Element b) {
  const auto one = integer_range(a), other = integer_range(b);
  if (!one || !other) return;
  const double span =
      (one->largest - one->lowest) * (other->largest - other->lowest) * static_cast<double>(terms);
  if (span >= 0x1p24)
    context.note(
        fmt::format("{}: sums of {} products are exact up to 2^24 only", context.place(), terms));
}

Dynamic dynamically_quantized(NodeContext& context, const Operand& x) {
  // One scale for all values that are there: an entry's own if the batch has no other.
  if (!context.whole() && (context.fixed_batch() > 1 || x.rank() == 0 || !x.shape[0].is_batch()))
    context.needs_batch("one scale is found for all entries of the batch");
  if (!context.whole() && context.fixed_batch() == 0)
    context.note(
        fmt::format("{}: a scale is found for each entry of the batch, where the file "
                    "finds one for all of it",
                    context.place()));
  Operand low = x, high = x;
  for (size_t i = x.rank(); i-- > (context.whole() ? 0 : 1);) {
    const Dict over{{"dim", static_cast<int64_t>(i)}, {"keepdim", true}};
    low = context.call("min", {low}, over);
    high = context.call("max", {high}, over);
  }
  low = context.call("minimum", {low, context.scalar(0)});
  high = context.call("maximum", {high, context.scalar(0)});
  const Operand span = context.call("sub", {high, low});
  Operand scale = context.call("div", {span, context.scalar(255)});
  scale = context.call("where",
                       {context.call("eq", {scale, context.scalar(0)}),
                        context.constant_operand(Tensor::of(Shape(x.rank(), 1), {1.0f})), scale});
  scale.element = Element::f32;
  const auto whole_code = [&](const Operand& number) {
    return context.rounded(number, affine_format({.width = 24}));
  };
  Operand zero = context.call("clamp", {context.call("neg", {context.call("div", {low, scale})})},
                              Dict{{"min", 0.0}, {"max", 255.0}});
  zero = whole_code(zero);
  Operand codes = context.call("add", {whole_code(context.call("div", {x, scale})), zero});
  codes = context.call("clamp", {codes}, Dict{{"min", 0.0}, {"max", 255.0}});
  codes.element = zero.element = Element::u8;
  const auto single = [&](const Operand& number) {
    return context.whole() ? context.reshape(number, {}) : number;
  };
  return {codes, single(scale), single(zero)};
}

}  // namespace mase::onnx
