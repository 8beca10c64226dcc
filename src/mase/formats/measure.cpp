// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mase {

QuantizationError measure_error(const Quantizer& quantizer, const Tensor& in, const Tensor& out) {
  const Tensor x = in.to(DType::f32);
  QuantizationError result;
  result.bits = quantizer.bits_per_value(x.shape());
  double signal = 0, noise = 0;
  int64_t finite = 0, saturated = 0;
  float lowest = std::numeric_limits<float>::infinity(), largest = -lowest;
  for (const float y : out.values<float>()) {
    if (std::isnan(y)) continue;
    lowest = std::min(lowest, y);
    largest = std::max(largest, y);
  }
  if (quantizer.lowest) lowest = static_cast<float>(*quantizer.lowest);
  if (quantizer.largest) largest = static_cast<float>(*quantizer.largest);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double a = x.data<float>()[i], b = out.data<float>()[i];
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    const double error = std::fabs(a - b);
    result.max_error = std::max(result.max_error, error);
    signal += a * a;
    noise += error * error;
    ++finite;
    if ((b == largest && a > largest) || (b == lowest && a < lowest)) ++saturated;
  }
  if (finite) {
    result.mean_squared_error = noise / static_cast<double>(finite);
    result.saturation = static_cast<double>(saturated) / static_cast<double>(finite);
  }
  result.sqnr =
      noise > 0 ? 10 * std::log10(signal / noise) : std::numeric_limits<double>::infinity();
  return result;
}

std::vector<float> code_values(const Quantizer& quantizer) {
  if (quantizer.code_bits < 1 || quantizer.code_bits > 16 || !quantizer.decode) return {};
  const size_t count = size_t{1} << quantizer.code_bits;
  std::vector<float> values(count);
  const Shape shape = {static_cast<int64_t>(count)};
  // What is shared is made neutral: zeros have a step of 1, or a scale of nothing.
  Quantizer::Codes codes = quantizer.encode(values.data(), shape);
  std::iota(codes.codes.begin(), codes.codes.end(), 0u);
  std::fill(codes.exponents.begin(), codes.exponents.end(), 0);
  if (std::all_of(codes.scales.begin(), codes.scales.end(), [](double s) { return s == 0; }))
    std::fill(codes.scales.begin(), codes.scales.end(), 1.0);
  quantizer.decode(codes, values.data(), shape);
  return values;
}

std::vector<float> representable_values(const Quantizer& quantizer) {
  std::vector<float> values = code_values(quantizer);
  values.erase(std::remove_if(values.begin(), values.end(),
                              [](float value) { return !std::isfinite(value); }),
               values.end());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::string config_text(const FormatRecord& record, const Value& config) {
  std::string text;
  for (const auto& [key, value] : config.as_dict()) {
    const Field* field = record.schema.find(key);
    if (value.is_null() || (field && value == field->default_value)) continue;
    if (!text.empty()) text += ", ";
    text += key + "=" + (value.is_string() ? value.as_string() : python_repr(value));
  }
  return text;
}

}  // namespace mase
