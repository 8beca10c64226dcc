// SPDX-License-Identifier: Apache-2.0
// Figures about a format: its values, and what rounding a tensor to it costs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/formats/format.h"

namespace mase {

struct QuantizationError {
  double max_error = 0;
  double mean_squared_error = 0;
  double sqnr = 0;        // signal to quantisation noise in dB; infinite without an error
  double saturation = 0;  // share of finite values rounded to a limit from beyond it
  double bits = 0;        // per value, shared parts included
};
// Over finite inputs. Saturation counts values that lie beyond the largest or lowest result of the
// tensor by more than a rounding error where the format has no fixed limits.
QuantizationError measure_error(const Quantizer& quantizer, const Tensor& in, const Tensor& out);

// The value of every code, by code; block and scaled formats with scale 1. Empty above 16 bits.
std::vector<float> code_values(const Quantizer& quantizer);
// The distinct finite ones, ascending.
std::vector<float> representable_values(const Quantizer& quantizer);

// What the values of a tensor are in their codes, before a shared scale or exponent (zero points
// taken off): the constants a multiplier meets. Empty without codes.
std::vector<float> code_elements(const Quantizer& quantizer, const Tensor& tensor);

// Values beyond the limits of their format; nothing where it has none.
std::optional<int64_t> count_beyond(const Quantizer& quantizer, std::span<const float> values,
                                    const Shape& shape);

// "width=8, frac_width=4": the keys that differ from the defaults.
std::string config_text(const FormatRecord& record, const Value& config);

}  // namespace mase
