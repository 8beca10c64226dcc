// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/learned_bits.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace mase {
namespace {

float rounded_to(float value, int bits) {
  const float step = std::ldexp(1.0f, -bits);
  return std::floor(value / step + 0.5f) * step;
}

// floor(y) in a way that compilers make vectors of without SSE4; NaN stays. std::max gives its
// first argument where the second is NaN, so that what becomes an integer is a number.
inline float floor_of(float y) {
  const float inside = std::min(std::max(-0x1p24f, y), 0x1p24f);
  const float cut = static_cast<float>(static_cast<int32_t>(inside));
  const float low = cut > inside ? cut - 1 : cut;
  return std::fabs(y) < 0x1p23f ? low : y;  // larger ones are whole
}

// d value / d bits is ln 2 (x - value): half a step of rounding error is what one bit more halves.
double round_run(const float* in, const float* grad_out, float* out, size_t count, int bits) {
  const float up = std::ldexp(1.0f, bits), down = std::ldexp(1.0f, -bits);
  if (!grad_out) {
    for (size_t i = 0; i < count; ++i) out[i] = floor_of(in[i] * up + 0.5f) * down;
    return 0;
  }
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const float error = in[i] - floor_of(in[i] * up + 0.5f) * down;
    sum += static_cast<double>(error) * grad_out[i];
    out[i] = grad_out[i];
  }
  return sum * std::numbers::ln2 * learned_bits_slope;
}

}  // namespace

double fraction_bits(float number) {
  const double bits = learned_bits_slope * number - learned_bits_offset;
  return std::isfinite(bits) ? std::clamp<double>(bits, least_learned_bits, most_learned_bits) : 0;
}

int whole_fraction_bits(float number) {
  return static_cast<int>(std::lround(fraction_bits(number)));
}

float fraction_number(double bits) {
  return static_cast<float>((bits + learned_bits_offset) / learned_bits_slope);
}

double fraction_code(float value, int bits) {
  return std::floor(std::ldexp(static_cast<double>(value), bits) + 0.5);
}

QuantizerPtr learned_bits_quantizer(int64_t features, double start) {
  Quantizer result;
  result.format = "learned_bits";
  result.untyped = "its widths are still learned";
  const int first = static_cast<int>(std::lround(start));
  result.round = [first](const GroupRun&, const float* in, float* out, size_t count) {
    round_run(in, nullptr, out, count, first);
  };
  result.one = [first](const GroupRun&, float x, uint32_t) { return rounded_to(x, first); };
  result.bits = start;
  auto learned = std::make_shared<LearnedNumber>();
  learned->name = "bits";
  // Of an activation whose shape is not known yet: its features.
  learned->shape = [features](const Shape& tensor) {
    return features > 0 ? Shape{features} : tensor.empty() ? Shape{1} : tensor;
  };
  learned->start = [features, start](const float*, const Shape& tensor, float* number) {
    std::fill_n(number, features > 0 ? features : element_count(tensor), fraction_number(start));
  };
  learned->quantize = [features](const float* in, const float* number, float* out,
                                 const Shape& shape) {
    const int64_t count = element_count(shape);
    if (features > 0) {  // one feature's values
      round_run(in, nullptr, out, static_cast<size_t>(count), whole_fraction_bits(*number));
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      round_run(in + i, nullptr, out + i, 1, whole_fraction_bits(number[i]));
  };
  learned->gradient = [features](const float* in, const float* number, const float* grad_out,
                                 float* grad_in, double* grad_number, const Shape& shape) {
    const int64_t count = element_count(shape);
    if (features > 0) {
      *grad_number += round_run(in, grad_out, grad_in, static_cast<size_t>(count),
                                whole_fraction_bits(*number));
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      grad_number[i] +=
          round_run(in + i, grad_out + i, grad_in + i, 1, whole_fraction_bits(number[i]));
  };
  learned->gradient_scale = [](int64_t) { return 1.0; };
  result.learned = std::move(learned);
  return std::make_shared<const Quantizer>(std::move(result));
}

}  // namespace mase
