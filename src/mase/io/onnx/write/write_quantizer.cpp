// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/write/write_quantizer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "mase/formats/floating.h"
#include "mase/formats/given.h"
#include "mase/io/onnx/read/tensor_moves.h"

namespace mase::onnx {
namespace {

constexpr const char* qonnx_domain = "qonnx.custom_op.general";

const char* qonnx_rounding(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even:
      return "ROUND";
    case Rounding::ceil:
      return "CEIL";
    case Rounding::floor:
      return "FLOOR";
    case Rounding::away_from_zero:
      return "UP";
    case Rounding::toward_zero:
      return "DOWN";
    case Rounding::half_away:
      return "HALF_UP";
    case Rounding::half_toward_zero:
      return "HALF_DOWN";
    default:
      return nullptr;
  }
}

std::optional<AffineFormat> affine_of(const Fixed& type, const Granularity& granularity) {
  if (type.overflow != Overflow::saturate || type.rounding == Rounding::stochastic ||
      type.sign_magnitude || !type.signs.empty() || type.width < 1)
    return {};
  for (const int width : type.widths)
    if (width != type.width) return {};  // QONNX's executor takes one width
  AffineFormat affine{.width = type.width, .is_signed = type.is_signed, .narrow = type.narrow};
  affine.rounding = type.rounding;
  affine.scales.clear();
  for (int64_t g = 0; g < group_count(type); ++g)
    affine.scales.push_back(std::ldexp(1.0, -fixed_at(type, g).frac));
  affine.zeros.assign(affine.scales.size(), 0);
  if (affine.scales.size() > 1) {
    if (granularity.kind != Granularity::Kind::axis) return {};
    affine.axis = granularity.axis;
  }
  return affine;
}

// Steps that are given, or were learned: the same codes; the quotient is rounded in single
// precision, as ONNX's executors do.
std::optional<AffineFormat> affine_of(const Scaled& type, const Granularity& granularity) {
  if (type.source != Scaled::Source::given || type.steps.empty()) return {};
  // Unsigned codes of ours are never narrow; ONNX's would leave out the largest.
  AffineFormat affine{
      .width = type.width, .is_signed = type.is_signed, .narrow = type.narrow && type.is_signed};
  affine.scales = type.steps;
  affine.zeros = type.zeros.empty() ? std::vector<double>{0} : type.zeros;
  const size_t groups = std::max(affine.scales.size(), affine.zeros.size());
  affine.scales.resize(groups, affine.scales.front());
  affine.zeros.resize(groups, affine.zeros.front());
  if (groups > 1) {
    if (granularity.kind == Granularity::Kind::axis)
      affine.axis = granularity.axis;
    else if (granularity.kind == Granularity::Kind::row)
      affine.axis = 0;  // see format_for_export
    else
      return {};
  }
  return affine;
}

// Small floats whose codes are all numbers up to a largest one.
std::optional<OperandFormat> scaled_float_of(const Float& type) {
  constexpr int widest_exponent = 8, widest_mantissa = 23;
  if (!type.hidden_bit || type.overflow != Overflow::saturate || !qonnx_rounding(type.rounding) ||
      type.exponent > widest_exponent || type.mantissa > widest_mantissa)
    return {};
  return OperandFormat{.name = "scaled_float",
                       .keys = Dict{{"exponent_width", type.exponent},
                                    {"mantissa_width", type.mantissa},
                                    {"exponent_bias", static_cast<double>(type.bias)},
                                    {"max_value", static_cast<double>(float_spec(type).largest)},
                                    {"scale", 1.0},
                                    {"saturation", true},
                                    {"has_infinity", false},
                                    {"rounding", rounding_name(type.rounding)}}};
}

std::optional<int64_t> channel_axis(const Value& config) {
  if (config["granularity"].as_string() != "channel") return {};
  return config["axis"].as_int();
}

Tensor along(const std::vector<double>& numbers, std::optional<int64_t> axis, const Shape& shape) {
  std::vector<float> values(numbers.begin(), numbers.end());
  if (!axis || values.size() == 1) return Tensor::of({}, std::vector<float>{values.front()});
  Shape ones(shape.size(), 1);
  ones[static_cast<size_t>(*axis < 0 ? *axis + static_cast<int64_t>(shape.size()) : *axis)] =
      static_cast<int64_t>(values.size());
  return Tensor::of(ones, values);
}

std::vector<double> numbers_at(const OperandFormat& format, const char* key) {
  const Value* value = format.keys.find(key);
  return value ? given_numbers(*value) : std::vector<double>{0};
}

std::string write_qonnx(WriteContext& context, const std::string& name, const OperandFormat& format,
                        const Shape& shape) {
  const auto put = [&](const char* what, const Tensor& tensor) {
    return context.constant(fmt::format("{}.{}", name, what), tensor);
  };
  const auto single = [&](const char* what, double value) {
    return put(what, Tensor::scalar(static_cast<float>(value)));
  };
  if (format.name == "bipolar")
    return context.add("BipolarQuant",
                       {name, put("scale", along(numbers_at(format, "scale"), format.axis, shape))},
                       {}, qonnx_domain);
  if (format.name == "scaled_float") {
    const Dict& keys = format.keys;
    const double exponent = keys.at("exponent_width").as_double();
    const double mantissa = keys.at("mantissa_width").as_double();
    const double bias = keys.at("exponent_bias").is_null() ? std::exp2(exponent - 1) - 1
                                                           : keys.at("exponent_bias").as_double();
    const double largest =
        keys.at("max_value").is_null()
            ? (2 - std::exp2(-mantissa)) * std::exp2(std::exp2(exponent) - 1 - bias)
            : keys.at("max_value").as_double();
    return context.add(
        "FloatQuant",
        {name, put("scale", along(numbers_at(format, "scale"), format.axis, shape)),
         single("exponent_width", exponent), single("mantissa_width", mantissa),
         single("exponent_bias", bias), single("max_value", largest)},
        {integer_attribute("has_inf", keys.at("has_infinity").as_bool()),
         integer_attribute("has_nan", !keys.at("saturation").as_bool()),
         integer_attribute("has_subnormal", 1),
         integer_attribute("saturation", keys.at("saturation").as_bool()),
         text_attribute("rounding_mode",
                        qonnx_rounding(rounding_from_name(keys.at("rounding").as_string())))},
        qonnx_domain);
  }
  if (format.name == "truncated") {
    const Dict& keys = format.keys;
    const double scale = keys.at("scale").as_double(), left = keys.at("width").as_double();
    const bool first = keys.at("keeps_scale").as_bool();
    const double out_scale = keys.at("output_scale").as_double(),
                 dropped = first ? keys.at("dropped").as_double()
                                 : std::nearbyint(std::log2(out_scale / scale));
    std::vector<std::string> inputs = {name, single("scale", scale),
                                       single("zero_point", keys.at("zero_point").as_double()),
                                       single("width_before", left + dropped)};
    if (!first) inputs.push_back(single("output_scale", out_scale));
    inputs.push_back(single("width", left));
    std::vector<Attribute> attributes = {text_attribute(
        "rounding_mode", qonnx_rounding(rounding_from_name(keys.at("rounding").as_string())))};
    if (!first) {
      attributes.push_back(integer_attribute("signed", keys.at("is_signed").as_bool()));
      attributes.push_back(integer_attribute("narrow", keys.at("narrow").as_bool()));
    }
    return context.add("Trunc", inputs, attributes, qonnx_domain);
  }
  const AffineFormat& affine = *format.affine;
  return context.add(
      "Quant",
      {name, put("scale", along(affine.scales, affine.axis, shape)),
       put("zero_point", along(affine.zeros, affine.axis, shape)), single("width", affine.width)},
      {integer_attribute("signed", affine.is_signed), integer_attribute("narrow", affine.narrow),
       text_attribute("rounding_mode", qonnx_rounding(affine.rounding))},
      qonnx_domain);
}

std::string write_qdq(WriteContext& context, const std::string& name, const OperandFormat& format,
                      const Shape& shape) {
  const AffineFormat& affine = *format.affine;
  const int stored = affine.width > 8 ? 16 : 8;
  const DType dtype = stored == 16 ? (affine.is_signed ? DType::i16 : DType::u16)
                                   : (affine.is_signed ? DType::i8 : DType::u8);
  const auto flat = [&](const std::vector<double>& numbers) {
    std::vector<float> values(numbers.begin(), numbers.end());
    if (affine.block > 0) {
      // [rows, blocks], or turned where the blocks go down the columns.
      const bool down = *affine.axis == 0;
      const int64_t rows = shape[down ? 1 : 0], blocks = shape[down ? 0 : 1] / affine.block;
      const Tensor tensor = Tensor::of({rows, blocks}, values);
      return down ? transposed(tensor, {1, 0}) : tensor;
    }
    const bool one = !affine.axis || values.size() == 1;
    return Tensor::of(one ? Shape{} : Shape{static_cast<int64_t>(values.size())}, values);
  };
  std::vector<Attribute> attributes;
  if (affine.axis) {
    const auto rank = static_cast<int64_t>(shape.size());
    attributes.push_back(
        integer_attribute("axis", *affine.axis < 0 ? *affine.axis + rank : *affine.axis));
  }
  if (affine.block > 0) attributes.push_back(integer_attribute("block_size", affine.block));
  std::vector<double> zeros = affine.zeros;
  zeros.resize(affine.scales.size(), zeros.front());
  const std::string scale = context.constant(name + ".scale", flat(affine.scales));
  const std::string zero = context.constant(name + ".zero_point", flat(zeros).to(dtype));
  std::string codes = context.add("QuantizeLinear", {name, scale, zero}, attributes);
  const int bits = affine.width - (affine.is_signed ? 1 : 0);
  if (affine.width != stored || affine.narrow) {
    const double high = std::exp2(bits) - (!affine.is_signed && affine.narrow ? 2 : 1);
    const double low = affine.is_signed ? -std::exp2(bits) + (affine.narrow ? 1 : 0) : 0;
    const auto limit = [&](const char* what, double value) {
      return context.constant(fmt::format("{}.{}", name, what),
                              Tensor::scalar(static_cast<float>(value)).to(dtype));
    };
    codes = context.add("Clip", {codes, limit("lowest", low), limit("largest", high)});
  }
  return context.add("DequantizeLinear", {codes, scale, zero}, attributes);
}

}  // namespace

std::optional<OperandFormat> format_for_export(const Quantizer& quantizer, size_t rank) {
  const Value& config = quantizer.config;
  if (quantizer.format == "affine") {
    AffineFormat affine{.width = static_cast<int>(config["width"].as_int()),
                        .is_signed = config["is_signed"].as_bool(),
                        .narrow = config["narrow"].as_bool(),
                        .scales = given_numbers(config["scale"]),
                        .zeros = given_numbers(config["zero_point"]),
                        .axis = channel_axis(config),
                        .block = given_block(config),
                        .rounding = rounding_from_name(config["rounding"].as_string()),
                        .zero_first = config["zero_first"].as_bool()};
    if (affine.zeros.empty()) affine.zeros = {0};
    if (affine.block > 0) affine.axis = -1;
    return affine_format(affine);
  }
  if (quantizer.format == "bipolar" || quantizer.format == "scaled_float")
    return OperandFormat{
        .name = quantizer.format, .keys = config.as_dict(), .axis = channel_axis(config)};
  if (quantizer.format == "truncated")
    return OperandFormat{.name = quantizer.format, .keys = config.as_dict()};
  if (!quantizer.type) return {};
  if (const Fixed* fixed = quantizer.type->as<Fixed>())
    if (const auto affine = affine_of(*fixed, quantizer.type->granularity))
      return affine_format(*affine);
  if (const Scaled* scaled = quantizer.type->as<Scaled>()) {
    // A scale for each row of the last dimension is one for each entry of the first in matrices.
    const bool rows = quantizer.type->granularity.kind == Granularity::Kind::row;
    if (rows && scaled->steps.size() > 1 && rank != 2) return {};
    if (const auto affine = affine_of(*scaled, quantizer.type->granularity))
      return affine_format(*affine);
  }
  if (const Float* small = quantizer.type->as<Float>()) return scaled_float_of(*small);
  if (const Binary* binary = quantizer.type->as<Binary>(); binary && !binary->scaled)
    return OperandFormat{.name = "bipolar", .keys = Dict{{"scale", 1.0}}};
  return {};
}

std::optional<std::string> why_not(const OperandFormat& format, Flavour flavour,
                                   int64_t operator_set) {
  if (flavour == Flavour::plain)
    return "a plain float model has no quantisers; choose a flavour: qonnx, qcdq or qdq";
  if (flavour == Flavour::qonnx) {
    if (!format.affine) return {};
    if (format.affine->block > 0)
      return "QONNX has no scales for blocks of values (--flavour qcdq)";
    if (!qonnx_rounding(format.affine->rounding))
      return fmt::format("QONNX does not round '{}'", rounding_name(format.affine->rounding));
    const auto& zeros = format.affine->zeros;
    if (!format.affine->zero_first &&
        std::any_of(zeros.begin(), zeros.end(), [](double zero) { return zero != 0; }))
      return "QONNX adds the zero point before rounding, this format after it";
    return {};
  }
  if (!format.affine) return "ONNX itself has no such quantiser; QONNX has (--flavour qonnx)";
  const AffineFormat& affine = *format.affine;
  if (affine.rounding != Rounding::nearest_even)
    return "QuantizeLinear rounds to nearest even only; QONNX has other ways (--flavour qonnx)";
  for (const double zero : affine.zeros)
    if (zero != std::floor(zero)) return "its zero point is no whole number";
  if (affine.zero_first &&
      std::any_of(affine.zeros.begin(), affine.zeros.end(), [](double zero) { return zero != 0; }))
    return "QuantizeLinear adds the zero point after rounding, this format before it";
  if (affine.width > 16 || (affine.width > 8 && operator_set < 21))
    return fmt::format("QuantizeLinear of operator set {} has no {} bits", operator_set,
                       affine.width);
  constexpr int64_t blocks_since = 21;
  if (affine.block > 0 && operator_set < blocks_since)
    return "scales for blocks of values came with operator set 21 (--opset 21)";
  const bool whole = (affine.width == 8 || affine.width == 16) && !affine.narrow;
  if (flavour == Flavour::qdq && !whole)
    return fmt::format("{} bits{} need a Clip (--flavour qcdq)", affine.width,
                       affine.narrow ? " in a narrow range" : "");
  return {};
}

std::string write_quantizer(WriteContext& context, const std::string& name,
                            const OperandFormat& format, const Shape& shape) {
  return context.flavour() == Flavour::qonnx ? write_qonnx(context, name, format, shape)
                                             : write_qdq(context, name, format, shape);
}

}  // namespace mase::onnx
