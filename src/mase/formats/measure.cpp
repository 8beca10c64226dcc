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
  if (quantizer.code_bits < 1 || quantizer.code_bits > 16) return {};
  const size_t count = size_t{1} << quantizer.code_bits;
  std::vector<float> values(count);
  const Shape shape = {static_cast<int64_t>(count)};
  if (misfit(quantizer, shape)) return {};  // every group has values of its own
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
  // The lowest code of a narrow range is never used.
  std::erase_if(values, [&](float value) {
    return !std::isfinite(value) || (quantizer.lowest && value < *quantizer.lowest);
  });
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<float> code_elements(const Quantizer& quantizer, const Tensor& tensor) {
  if (!quantizer.code_bits) return {};
  const Tensor in = tensor.to(DType::f32);
  Quantizer::Codes codes = quantizer.encode(in.data<float>(), in.shape());
  std::fill(codes.exponents.begin(), codes.exponents.end(), 0);
  // Steps become 1; the zero points behind them stay.
  const bool affine =
      quantizer.type && quantizer.type->as<Scaled>() && quantizer.type->as<Scaled>()->affine;
  for (size_t i = 0; i < codes.scales.size(); i += affine ? 2 : 1) codes.scales[i] = 1;
  std::vector<float> elements(codes.codes.size());
  quantizer.decode(codes, elements.data(), in.shape());
  return elements;
}

std::optional<int64_t> count_beyond(const Quantizer& quantizer, std::span<const float> values,
                                    const Shape& shape) {
  const auto beyond = [&](size_t first, size_t count, double low, double high) {
    int64_t result = 0;
    for (size_t i = first; i < first + count; ++i) result += values[i] < low || values[i] > high;
    return result;
  };
  if (quantizer.lowest && quantizer.largest)
    return beyond(0, values.size(), *quantizer.lowest, *quantizer.largest);
  if (!quantizer.group_limits) return {};
  int64_t result = 0;
  grouping(shape, quantizer.granularity).for_each_run([&](int64_t g, int64_t at, size_t n) {
    const Limits limits = quantizer.group_limits(g);
    result += beyond(static_cast<size_t>(at), n, limits.lowest, limits.largest);
  });
  return result;
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
