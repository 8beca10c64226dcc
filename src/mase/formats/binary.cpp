// SPDX-License-Identifier: Apache-2.0
// One bit per value. Bipolar: +1 for x >= 0, else -1. Otherwise, as MASE: the mean magnitude of the
// values under the same first index where x > 0, and 0 elsewhere; `symmetric` makes that
// +mean and -mean (XNOR-Net: Rastegari et al., 2016). Stochastic: +1 with probability
// clamp((x + 1) / 2, 0, 1). Any rank; a vector is one group.
#include <cmath>

#include "mase/formats/elementwise.h"
#include "mase/formats/groups.h"
#include "mase/formats/rounding.h"

namespace mase {
namespace {

bool is_high(float x, bool stochastic, bool at_zero, uint32_t key, int64_t element) {
  if (!stochastic) return at_zero ? x >= 0 : x > 0;
  const float p = std::fmin(std::fmax((x + 1) / 2, 0.0f), 1.0f);
  return p > stochastic_uniform(key, static_cast<uint32_t>(element));
}

Quantizer make(const Value& config) {
  const bool stochastic = config["stochastic"].as_bool();
  const uint64_t seed = static_cast<uint64_t>(config["seed"].as_int());
  if (config["bipolar"].as_bool()) {
    ElementwiseFormat format;
    format.reference = [stochastic, seed](float x, uint64_t draw, uint32_t element) {
      if (std::isnan(x)) return x;
      return is_high(x, stochastic, true, stochastic_key(seed, draw), element) ? 1.0f : -1.0f;
    };
    format.kernel = [reference = format.reference, stochastic](const float* in, float* out,
                                                               size_t count, uint64_t draw) {
      if (stochastic) {
        for (size_t i = 0; i < count; ++i)
          out[i] = reference(in[i], draw, static_cast<uint32_t>(i));
        return;
      }
      for (size_t i = 0; i < count; ++i) {
        const float x = in[i];
        out[i] = x >= 0 ? 1.0f : x < 0 ? -1.0f : x;
      }
    };
    format.stochastic = stochastic;
    format.bits = 1;
    format.code_bits = 1;
    format.code_of = [](float x) { return x > 0 ? 1u : 0u; };
    format.value_of = [](uint32_t code) { return code & 1 ? 1.0f : -1.0f; };
    format.lowest = -1;
    format.largest = 1;
    format.smallest_positive = 1;
    Quantizer quantizer = make_elementwise(std::move(format), config);
    quantizer.precision = {1};
    return quantizer;
  }
  const bool symmetric = config["symmetric"].as_bool();
  Quantizer q;
  q.config = config;
  q.precision = {1};
  q.quantize_drawn = [=](const float* in, float* out, const Shape& shape, uint64_t draw) {
    const Grouping groups = first_dimension_groups(shape);
    const uint32_t key = stochastic_key(seed, draw);
    for (int64_t g = 0; g < groups.groups; ++g) {
      double sum = 0;
      int64_t finite = 0;
      groups.for_each(g, [&](int64_t i) {
        if (!std::isfinite(in[i])) return;
        sum += std::fabs(in[i]);
        ++finite;
      });
      const auto mean = static_cast<float>(finite ? sum / static_cast<double>(finite) : 0.0);
      groups.for_each(g, [&](int64_t i) {
        if (std::isnan(in[i]))
          out[i] = in[i];
        else if (is_high(in[i], stochastic, symmetric, key, i))
          out[i] = mean;
        else
          out[i] = symmetric ? -mean : 0.0f;
      });
    }
  };
  q.quantize = [drawn = q.quantize_drawn](const float* in, float* out, const Shape& shape) {
    drawn(in, out, shape, 0);
  };
  q.reference = q.quantize;
  if (!stochastic) q.quantize_drawn = nullptr;
  q.bits_per_value = [](const Shape& shape) {
    const int64_t values = element_count(shape);
    return values ? 1 + 32 * static_cast<double>(first_dimension_groups(shape).groups) /
                            static_cast<double>(values)
                  : 1.0;
  };
  return q;
}

const Register<FormatRecord> registered{{
    .name = "binary",
    .class_suffix = "Binary",
    .summary = "one bit: -1 and +1, or 0 and the mean magnitude",
    .schema = {{{.name = "width",
                 .type = FieldType::integer,
                 .help = "accepted for MASE's files; a binary value has one bit",
                 .minimum = 1,
                 .maximum = 64},
                {.name = "stochastic",
                 .type = FieldType::boolean,
                 .default_value = false,
                 .help = "draw the sign with probability (x + 1) / 2"},
                {.name = "bipolar",
                 .type = FieldType::boolean,
                 .default_value = false,
                 .help = "-1 and +1, unscaled"},
                {.name = "symmetric",
                 .type = FieldType::boolean,
                 .default_value = false,
                 .help = "scaled only: minus the mean instead of 0 for negative values"},
                seed_field(),
                ste_field()}},
    .make = make,
    .ladder = [](double) -> std::vector<Value> {
      return {Dict{{"bipolar", true}}, Dict{{"symmetric", true}}};
    },
}};

}  // namespace
}  // namespace mase
