// SPDX-License-Identifier: Apache-2.0
// The quantisers of QONNX, as its executor computes them: where its specification says otherwise
// (defaults of `narrow` and others), files in the field were made with the executor's.
#include <algorithm>
#include <cmath>

#include "mase/base/text.h"
#include "mase/io/onnx/operator.h"

namespace mase::onnx::qonnx_operators {
namespace {

// In any case of letters.
Rounding rounding_of(const NodeContext& context, const char* fallback) {
  const std::string given = context.text("rounding_mode", fallback), name = lower_case(given);
  if (name == "round" || name == "half_even") return Rounding::nearest_even;
  if (name == "ceil") return Rounding::ceil;
  if (name == "floor") return Rounding::floor;
  if (name == "up") return Rounding::away_from_zero;
  if (name == "down") return Rounding::toward_zero;
  if (name == "half_up") return Rounding::half_away;
  if (name == "half_down") return Rounding::half_toward_zero;
  context.fail(fmt::format("rounding_mode '{}'", printable(given)));
}

double single(const NodeContext& context, size_t index, const char* what) {
  const std::vector<double> numbers = context.numbers(index, what);
  if (numbers.empty() || std::any_of(numbers.begin(), numbers.end(),
                                     [&](double number) { return number != numbers[0]; }))
    context.fail(fmt::format("{} has {} values, wanted is one", what, numbers.size()));
  return numbers.front();
}

int width_of(const NodeContext& context, size_t index) {
  const double width = single(context, index, "the bit width");
  if (!(width >= 1 && width <= 24) || width != std::floor(width))
    context.fail(fmt::format("a width of {} bits: 1 to 24 are read", width));
  return static_cast<int>(width);
}

PerChannel along_axis(const NodeContext& context, size_t index, const char* what) {
  const Operand& x = context.input(0);
  const auto numbers = per_channel(context.constant(index, what), x.rank());
  if (!numbers) context.fail(fmt::format("{} varies along several axes", what));
  if (numbers->axis && !x.is_constant() &&
      x.shape[static_cast<size_t>(*numbers->axis)] % context.batch() == 0)
    context.fail(fmt::format("{} differs from one entry of the batch to the next", what));
  return *numbers;
}

PerChannel scale_of(const NodeContext& context) {
  PerChannel scale = along_axis(context, 1, "the scale");
  for (const double number : scale.numbers)
    if (!(number > 0) || !std::isfinite(number))
      context.fail(fmt::format("a scale of {}", number), "scales are positive numbers");
  return scale;
}

OperandFormat bipolar(const PerChannel& scale) {
  OperandFormat format{.name = "bipolar", .axis = scale.axis};
  List numbers;
  for (const double number : scale.numbers) numbers.emplace_back(number);
  format.keys = Dict{{"scale", numbers.size() == 1 ? numbers[0] : Value(numbers)}};
  return format;
}

void quant(NodeContext& context) {
  const PerChannel scale = scale_of(context), zero = along_axis(context, 2, "the zero point");
  if (scale.axis && zero.axis && scale.axis != zero.axis)
    context.fail("scale and zero point vary along different axes");
  AffineFormat format;
  format.width = width_of(context, 3);
  format.is_signed = context.integer("signed", 1) != 0;
  format.narrow = context.integer("narrow", 1) != 0;
  format.scales = scale.numbers;
  format.zeros = zero.numbers;
  format.axis = scale.axis ? scale.axis : zero.axis;
  format.rounding = rounding_of(context, "ROUND");
  if (format.width == 1 && format.is_signed)
    return context.result(0, context.rounded(context.input(0), bipolar(scale)));
  context.result(0, context.rounded(context.input(0), affine_format(format)));
}

void bipolar_quant(NodeContext& context) {
  context.result(0, context.rounded(context.input(0), bipolar(scale_of(context))));
}

void float_quant(NodeContext& context) {
  const PerChannel scale = scale_of(context);
  const double exponent = single(context, 2, "the exponent width"),
               mantissa = single(context, 3, "the mantissa width");
  if (exponent != std::floor(exponent) || mantissa != std::floor(mantissa) || exponent < 0 ||
      exponent > 8 || mantissa < 0 || mantissa > 23)
    context.fail(fmt::format("an exponent of {} and a mantissa of {} bits", exponent, mantissa));
  OperandFormat format{.name = "scaled_float", .axis = scale.axis};
  List scales;
  for (const double number : scale.numbers) scales.emplace_back(number);
  format.keys = Dict{{"exponent_width", static_cast<int64_t>(exponent)},
                     {"mantissa_width", static_cast<int64_t>(mantissa)},
                     {"scale", scales.size() == 1 ? scales[0] : Value(scales)},
                     {"saturation", context.integer("saturation", 1) != 0},
                     {"has_infinity", context.integer("has_inf", 0) != 0},
                     {"rounding", rounding_name(rounding_of(context, "ROUND"))}};
  if (context.has(4)) format.keys.set("exponent_bias", single(context, 4, "the exponent's bias"));
  if (context.has(5)) {
    const double largest = single(context, 5, "the largest value");
    if (std::isfinite(largest)) format.keys.set("max_value", largest);
  }
  context.result(0, context.rounded(context.input(0), format));
}

void trunc(NodeContext& context) {
  const bool second = context.input_count() > 5;  // with an output scale
  OperandFormat format{.name = "truncated"};
  format.keys = Dict{{"scale", single(context, 1, "the scale")},
                     {"zero_point", single(context, 2, "the zero point")},
                     {"width", width_of(context, second ? 5 : 4)},
                     {"rounding", rounding_name(rounding_of(context, "FLOOR"))}};
  if (second) {
    format.keys.set("output_scale", single(context, 4, "the output scale"));
    format.keys.set("is_signed", context.integer("signed", 1) != 0);
    format.keys.set("narrow", context.integer("narrow", 0) != 0);
  } else {
    const int dropped = width_of(context, 3) - width_of(context, 4);
    if (dropped < 0) context.fail("more bits are left than there were");
    format.keys.set("dropped", dropped);
    format.keys.set("keeps_scale", true);
  }
  context.result(0, context.rounded(context.input(0), format));
}

// The domains that files use for QONNX.
std::vector<std::string> spellings(std::initializer_list<const char*> ops) {
  std::vector<std::string> names;
  for (const char* op : ops)
    for (const char* domain :
         {"qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"})
      names.push_back(operator_name(domain, op));
  return names;
}

OnnxOperator qonnx_operator(std::initializer_list<const char*> ops, const char* summary,
                            std::function<void(NodeContext&)> convert) {
  std::vector<std::string> names = spellings(ops);
  const std::string name = names.front();
  names.erase(names.begin());
  return {
      .name = name, .aliases = std::move(names), .summary = summary, .convert = std::move(convert)};
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>(qonnx_operator({"Quant", "IntQuant"},
                                          "the format 'affine' or 'integer' of an operand", quant)),
    Register<OnnxOperator>(
        qonnx_operator({"BipolarQuant"}, "the format 'bipolar' of an operand", bipolar_quant)),
    Register<OnnxOperator>(
        qonnx_operator({"FloatQuant"}, "the format 'scaled_float' of an operand", float_quant)),
    Register<OnnxOperator>(
        qonnx_operator({"Trunc"}, "the format 'truncated' of an operand", trunc)),
};

}  // namespace
}  // namespace mase::onnx::qonnx_operators
