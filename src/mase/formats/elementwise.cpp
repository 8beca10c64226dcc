// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/elementwise.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "mase/base/fields.h"
#include "mase/formats/kernels/elementwise.h"

namespace mase {
namespace {

void add_codes(Quantizer& q, const std::shared_ptr<const ElementwiseFormat>& format) {
  q.code_bits = format->coding.bits;
  q.encode = [format](const float* in, const Shape& shape) {
    const auto n = static_cast<size_t>(element_count(shape));
    Quantizer::Codes codes;
    codes.codes.resize(n);
    // Piece by piece in the first-level cache. Draws count elements from the start of an array, so
    // a stochastic format rounds all of it at once.
    const size_t piece = format->stochastic ? n : std::min<size_t>(n, 2048);
    std::vector<float> rounded(piece);
    for (size_t i = 0; i < n; i += piece) {
      const size_t count = std::min(piece, n - i);
      format->kernel(in + i, rounded.data(), count, 0);
      format->coding.encode(rounded.data(), codes.codes.data() + i, count);
    }
    return codes;
  };
  q.decode = [format](const Quantizer::Codes& codes, float* out, const Shape& shape) {
    const auto n = static_cast<size_t>(element_count(shape));
    MASE_CHECK(codes.codes.size() == n, "{} codes for {} values", codes.codes.size(), n);
    format->coding.decode(codes.codes.data(), out, n);
  };
}

}  // namespace

Quantizer make_elementwise(ElementwiseFormat given) {
  Quantizer q;
  q.elementwise = true;
  const auto format = std::make_shared<const ElementwiseFormat>(std::move(given));
  q.quantize = [format](const float* in, float* out, const Shape& shape) {
    format->kernel(in, out, static_cast<size_t>(element_count(shape)), 0);
  };
  q.reference = [format](const float* in, float* out, const Shape& shape) {
    const int64_t n = element_count(shape);
    for (int64_t i = 0; i < n; ++i) out[i] = format->reference(in[i], 0, static_cast<uint32_t>(i));
  };
  if (format->stochastic)
    q.quantize_drawn = [format](const float* in, float* out, const Shape& shape, uint64_t draw) {
      format->kernel(in, out, static_cast<size_t>(element_count(shape)), draw);
    };
  if (format->coding.bits) add_codes(q, format);
  return q;
}

void set_clipped_gradient(Quantizer& quantizer, double low, double high) {
  quantizer.gradient = [lo = static_cast<float>(low), hi = static_cast<float>(high)](
                           const float* in, const float* grad_out, float* grad_in,
                           const Shape& shape) {
    clipped_gradient_kernel(lo, hi, in, grad_out, grad_in,
                            static_cast<size_t>(element_count(shape)));
  };
}

int64_t int_or(const Value& config, const std::string& key, int64_t fallback) {
  const Value& value = config[key];
  return value.is_null() ? fallback : value.as_int(key);
}

Error config_error(const Value& config, const std::string& key, std::string cause,
                   std::string remedy) {
  const Value& value = config[key];
  const Position& position = value.position() ? value.position() : config.position();
  return Error(position, key, std::move(cause), std::move(remedy));
}

Field width_field(int64_t least, int64_t most, const std::string& help) {
  return integer_field("width", help)
      .needed()
      .between(static_cast<double>(least), static_cast<double>(most));
}

}  // namespace mase
