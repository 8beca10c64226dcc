// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/operand_format.h"

#include <algorithm>
#include <cmath>

#include "mase/formats/format.h"

namespace mase::onnx {
namespace {

Value one_or_list(const std::vector<double>& numbers) {
  if (numbers.size() == 1) return numbers.front();
  List list;
  for (const double number : numbers) list.emplace_back(number);
  return list;
}

}  // namespace

OperandFormat affine_format(const AffineFormat& affine) {
  OperandFormat format{.name = "affine", .axis = affine.axis, .affine = affine};
  format.keys = Dict{{"width", affine.width},
                     {"is_signed", affine.is_signed},
                     {"narrow", affine.narrow},
                     {"scale", one_or_list(affine.scales)},
                     {"zero_point", one_or_list(affine.zeros)},
                     {"rounding", rounding_name(affine.rounding)},
                     {"zero_first", affine.zero_first}};
  return format;
}

AffineFormat ranged(AffineFormat format, double lowest, double largest, const std::string& place) {
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
  throw Error(place, fmt::format("integers from {} to {} have no width", lowest, largest));
}

std::optional<OperandFormat> fixed_format(const OperandFormat& format) {
  if (!format.affine) return {};
  const AffineFormat& affine = *format.affine;
  if ((!affine.is_signed && affine.narrow) || affine.block > 0) return {};
  if (std::any_of(affine.zeros.begin(), affine.zeros.end(), [](double z) { return z != 0; }))
    return {};
  std::vector<int64_t> fracs;
  for (const double scale : affine.scales) {
    int exponent = 0;
    if (std::frexp(scale, &exponent) != 0.5) return {};
    const int frac = 1 - exponent;
    constexpr int farthest = 60;  // well inside what single precision divides exactly
    if (frac < -farthest || frac > farthest) return {};
    fracs.push_back(frac);
  }
  OperandFormat fixed{.name = "integer", .axis = affine.axis};
  fixed.keys = Dict{{"width", affine.width},
                    {"frac_width", fracs.size() == 1 ? Value(fracs.front()) : Value::of(fracs)},
                    {"is_signed", affine.is_signed},
                    {"narrow", affine.narrow},
                    {"rounding", rounding_name(affine.rounding)}};
  return fixed;
}

OperandFormat permuted(OperandFormat format, const std::vector<int64_t>& order, size_t rank) {
  if (!format.axis) return format;
  const int64_t from = *format.axis < 0 ? *format.axis + static_cast<int64_t>(rank) : *format.axis;
  const auto place = std::find(order.begin(), order.end(), from);
  format.axis = static_cast<int64_t>(place - order.begin());
  if (format.affine) format.affine->axis = format.axis;
  return format;
}

bool has_keys(const OperandFormat& format, size_t rank) {
  if (!format.affine || format.affine->block == 0) return true;
  const auto last = static_cast<int64_t>(rank) - 1;
  return format.axis && (*format.axis == last || *format.axis == -1);
}

void add_keys(Dict& table, const std::string& operand, const OperandFormat& format) {
  table.set("name", format.name);
  for (const auto& [key, value] : format.keys) table.set(operand + "_" + key, value);
  if (!format.axis) return;
  if (format.affine && format.affine->block > 0) {
    table.set(operand + "_granularity", "block");
    table.set(operand + "_block_size", format.affine->block);
    return;
  }
  table.set(operand + "_granularity", format.name == "integer" ? "row" : "channel");
  table.set(operand + "_axis", *format.axis);
}

Tensor round_tensor(const OperandFormat& format, const Tensor& tensor, const std::string& place) {
  Dict table;
  add_keys(table, "x", format);
  Dict keys;
  for (const auto& [key, value] : table)
    if (key != "name") keys.set(key.substr(2), value);
  return quantize(*make_quantizer(format.name, Value(keys), place), tensor);
}

std::optional<PerChannel> per_channel(const Tensor& numbers, size_t rank) {
  PerChannel result;
  for (int64_t i = 0; i < numbers.numel(); ++i) result.numbers.push_back(numbers.item(i));
  if (numbers.numel() == 1) return result;
  const Shape& shape = numbers.shape();
  if (shape.size() > rank) return {};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (result.axis) return {};
    result.axis = static_cast<int64_t>(rank - shape.size() + i);
  }
  return result;
}

}  // namespace mase::onnx
