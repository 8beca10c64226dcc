// SPDX-License-Identifier: Apache-2.0
// The quantisers of QONNX, as its executor computes them: where its specification says otherwise
// (defaults of `narrow` and others), files in the field were made with the executor's.
#include <algorithm>
#include <cmath>

#include "mase/base/text.h"
#include "mase/io/onnx/read/operator.h"

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
  if (!(width >= 1 && width <= 32) || width != std::floor(width))
    context.fail(fmt::format("a width of {} bits: 1 to 32 are read", width));
  return static_cast<int>(width);
}

void check_scale(const NodeContext& context, double scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    context.fail(fmt::format("a scale of {}", scale), "scales are positive numbers");
}

// One number, or one for each entry of one axis. Nothing if it varies along several.
std::optional<PerChannel> along_axis(const NodeContext& context, size_t index, const char* what) {
  const Operand& x = context.input(0);
  const auto numbers = per_channel(context.constant(index, what), x.rank());
  if (numbers && numbers->axis && !x.is_constant() &&
      x.shape[static_cast<size_t>(*numbers->axis)].has_batch())
    context.needs_batch(fmt::format("{} differs from one entry of the batch to the next", what));
  return numbers;
}

std::optional<PerChannel> scale_of(const NodeContext& context) {
  for (const double number : context.numbers(1, "the scale")) check_scale(context, number);
  return along_axis(context, 1, "the scale");
}

Value one_or_list(const std::vector<double>& numbers) {
  List list;
  for (const double number : numbers) list.emplace_back(number);
  return list.size() == 1 ? list[0] : Value(list);
}

OperandFormat bipolar(const PerChannel& scale) {
  return {
      .name = "bipolar", .keys = Dict{{"scale", one_or_list(scale.numbers)}}, .axis = scale.axis};
}

// x / scale rounded to a format whose scale is 1, times `factor`: for scales that no format holds.
Operand rounded_in_steps(NodeContext& context, const OperandFormat& format, const Operand& factor) {
  const Operand steps = context.call("div", {context.input(0), context.input(1)});
  return context.call("mul", {context.materialized(context.rounded(steps, format)), factor});
}

// (round(x / scale + zero) - zero) * scale, each number for itself.
Operand quantized_in_steps(NodeContext& context, AffineFormat format) {
  format.scales.assign(1, 1);
  format.zeros.assign(1, 0);
  format.axis.reset();
  Operand steps = context.call("div", {context.input(0), context.input(1)});
  steps = context.call("add", {steps, context.input(2)});
  const Operand codes = context.materialized(context.rounded(steps, affine_format(format)));
  const Operand centred = context.call("sub", {codes, context.input(2)});
  return context.call("mul", {centred, context.input(1)});
}

const PerChannel one{.numbers = {1}};

void quant(NodeContext& context) {
  const auto scale = scale_of(context), zero = along_axis(context, 2, "the zero point");
  AffineFormat format;
  format.width = width_of(context, 3);
  format.is_signed = context.integer("signed", 1) != 0;
  format.narrow = context.integer("narrow", 1) != 0;
  format.rounding = rounding_of(context, "ROUND");
  if (format.width == 1 && format.is_signed) {
    if (scale) return context.result(0, context.rounded(context.input(0), bipolar(*scale)));
    return context.result(0, rounded_in_steps(context, bipolar(one), context.input(1)));
  }
  if (!scale || !zero || (scale->axis && zero->axis && scale->axis != zero->axis))
    return context.result(0, quantized_in_steps(context, format));
  format.scales = scale->numbers;
  format.zeros = zero->numbers;
  format.axis = scale->axis ? scale->axis : zero->axis;
  context.result(0, context.rounded(context.input(0), affine_format(format)));
}

void bipolar_quant(NodeContext& context) {
  const auto scale = scale_of(context);
  context.result(0, scale ? context.rounded(context.input(0), bipolar(*scale))
                          : rounded_in_steps(context, bipolar(one), context.input(1)));
}

void float_quant(NodeContext& context) {
  const auto scale = scale_of(context);
  const double exponent = single(context, 2, "the exponent width"),
               mantissa = single(context, 3, "the mantissa width");
  if (exponent != std::floor(exponent) || mantissa != std::floor(mantissa) || exponent < 0 ||
      exponent > 8 || mantissa < 0 || mantissa > 23)
    context.fail(fmt::format("an exponent of {} and a mantissa of {} bits", exponent, mantissa));
  const PerChannel& numbers = scale ? *scale : one;
  OperandFormat format{.name = "scaled_float", .axis = numbers.axis};
  format.keys = Dict{{"exponent_width", static_cast<int64_t>(exponent)},
                     {"mantissa_width", static_cast<int64_t>(mantissa)},
                     {"scale", one_or_list(numbers.numbers)},
                     {"saturation", context.integer("saturation", 1) != 0},
                     {"has_infinity", context.integer("has_inf", 0) != 0},
                     {"rounding", rounding_name(rounding_of(context, "ROUND"))}};
  if (context.has(4)) format.keys.set("exponent_bias", single(context, 4, "the exponent's bias"));
  if (context.has(5)) {
    const double largest = single(context, 5, "the largest value");
    if (std::isfinite(largest)) format.keys.set("max_value", largest);
  }
  context.result(0, scale ? context.rounded(context.input(0), format)
                          : rounded_in_steps(context, format, context.input(1)));
}

// How many steps before are one after, where a Trunc says it by its scales: a power of two.
double steps_in_one(const NodeContext& context) {
  const std::vector<double> before = context.numbers(1, "the scale"),
                            after = context.numbers(4, "the output scale");
  const size_t count = std::max(before.size(), after.size());
  if (before.empty() || after.empty() || (before.size() != 1 && before.size() != count) ||
      (after.size() != 1 && after.size() != count))
    context.fail(fmt::format("{} scales and {} output scales", before.size(), after.size()));
  std::optional<double> common;
  for (size_t i = 0; i < count; ++i) {
    const double scale = after[after.size() == 1 ? 0 : i];
    check_scale(context, scale);
    const auto ratio =
        static_cast<float>(scale) / static_cast<float>(before[before.size() == 1 ? 0 : i]);
    const double steps = std::exp2(std::nearbyint(std::log2(static_cast<double>(ratio))));
    if (common.value_or(steps) != steps) context.fail("its scales drop different numbers of bits");
    common = steps;
  }
  return *common;
}

void trunc(NodeContext& context) {
  const bool second = context.input_count() > 5;  // with an output scale
  for (const double number : context.numbers(1, "the scale")) check_scale(context, number);
  const auto is_single = [&](size_t index) {
    return context.constant(index, "a scale").numel() == 1;
  };
  const bool in_steps = !is_single(1) || (second && !is_single(4));
  OperandFormat format{.name = "truncated"};
  format.keys = Dict{{"scale", in_steps ? 1.0 : single(context, 1, "the scale")},
                     {"zero_point", single(context, 2, "the zero point")},
                     {"width", width_of(context, second ? 5 : 4)},
                     {"rounding", rounding_name(rounding_of(context, "FLOOR"))}};
  Operand factor = context.input(1);
  if (second) {
    const double steps = steps_in_one(context);
    format.keys.set("output_scale", in_steps ? steps : single(context, 4, "the output scale"));
    format.keys.set("is_signed", context.integer("signed", 1) != 0);
    format.keys.set("narrow", context.integer("narrow", 0) != 0);
    factor = context.call("div", {context.input(4), context.scalar(steps)});
  } else {
    const int dropped = width_of(context, 3) - width_of(context, 4);
    if (dropped < 0) context.fail("more bits are left than there were");
    format.keys.set("dropped", dropped);
    format.keys.set("keeps_scale", true);
  }
  context.result(0, in_steps ? rounded_in_steps(context, format, factor)
                             : context.rounded(context.input(0), format));
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
