// SPDX-License-Identifier: Apache-2.0
// One bit per value. Bipolar: +1 for x >= 0, else -1. Otherwise, as MASE: the mean magnitude of the
// values under the same first index where x > 0, and 0 elsewhere; `symmetric` makes that
// +mean and -mean (XNOR-Net: Rastegari et al., 2016). Stochastic: +1 with probability
// clamp((x + 1) / 2, 0, 1). Any rank; a vector is one group.
#include <cmath>
#include <limits>

#include "mase/formats/elementwise.h"
#include "mase/formats/grouped.h"

namespace mase::binary_format {
namespace {

bool is_high(float x, bool stochastic, bool at_zero, uint32_t key, int64_t element) {
  if (!stochastic) return at_zero ? x >= 0 : x > 0;
  const float p = std::fmin(std::fmax((x + 1) / 2, 0.0f), 1.0f);
  return p > stochastic_uniform(key, static_cast<uint32_t>(element));
}

struct ScaledBinary {
  bool symmetric, stochastic;
  uint64_t seed;
  int bits = 1;
  bool scaled = true;

  GroupFit fit(const Grouping& groups, int64_t group, const float* in) const {
    return {.scale = static_cast<float>(mean_magnitude(groups, group, in, -1, 0))};
  }
  uint32_t code_of(float x, const GroupFit&, uint32_t key, int64_t element) const {
    return is_high(x, stochastic, symmetric, key, element) ? 1 : 0;
  }
  float multiple(uint32_t code) const { return code & 1 ? 1.0f : symmetric ? -1.0f : 0.0f; }
  ThresholdSpec thresholds(const GroupFit& fit) const {
    const float smallest = std::numeric_limits<float>::denorm_min();
    return {.above = symmetric ? 0 : smallest,
            .below = symmetric ? 0 : -std::numeric_limits<float>::infinity(),
            .low = -fit.scale,
            .middle = 0,
            .high = fit.scale};
  }
};

Quantizer make(const Value& config) {
  const bool stochastic = config["stochastic"].as_bool();
  const uint64_t seed = static_cast<uint64_t>(config["seed"].as_int());
  if (!config["bipolar"].as_bool())
    return make_grouped(ScaledBinary{config["symmetric"].as_bool(), stochastic, seed}, config);
  ElementwiseFormat format;
  format.reference = [stochastic, seed](float x, uint64_t draw, uint32_t element) {
    if (std::isnan(x)) return x;
    return is_high(x, stochastic, true, stochastic_key(seed, draw), element) ? 1.0f : -1.0f;
  };
  format.kernel = [reference = format.reference, stochastic](const float* in, float* out,
                                                             size_t count, uint64_t draw) {
    if (stochastic) {
      for (size_t i = 0; i < count; ++i) out[i] = reference(in[i], draw, static_cast<uint32_t>(i));
      return;
    }
    threshold_kernel({}, in, out, count);
  };
  format.stochastic = stochastic;
  format.bits = 1;
  format.coding = coding_of(
      1, [](float x) { return x > 0 ? 1u : 0u; },
      [](uint32_t code) { return code & 1 ? 1.0f : -1.0f; });
  format.lowest = -1;
  format.largest = 1;
  format.smallest_positive = 1;
  Quantizer quantizer = make_elementwise(std::move(format), config);
  quantizer.precision = {1};
  return quantizer;
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
}  // namespace mase::binary_format
