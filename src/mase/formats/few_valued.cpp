// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/few_valued.h"

#include <cmath>
#include <limits>

#include "mase/formats/elementwise.h"
#include "mase/formats/grouped.h"

namespace mase {
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

Quantizer plain_binary(bool stochastic, uint64_t seed) {
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
  format.coding = coding_of(
      1, [](float x) { return x > 0 ? 1u : 0u; },
      [](uint32_t code) { return code & 1 ? 1.0f : -1.0f; });
  return make_elementwise(std::move(format));
}

ThresholdSpec ternary_thresholds(float threshold, float scale) {
  return {.above = std::nextafter(threshold, std::numeric_limits<float>::infinity()),
          .below = -threshold,
          .low = -scale,
          .middle = 0 * scale,
          .high = scale};
}

uint32_t ternary_code(float sign) { return sign > 0 ? 1 : sign < 0 ? 3 : 0; }
float ternary_value(uint32_t code) {
  return (code & 3) == 1 ? 1.0f : (code & 3) == 3 ? -1.0f : 0.0f;
}

struct GroupedTernary {
  Ternary type;
  double scale_of_nothing = 0;  // where every value is zeroed
  int bits = 2;
  bool stochastic = false;
  uint64_t seed = 0;

  GroupFit fit(const Grouping& groups, int64_t group, const float* in) const {
    GroupFit result;
    result.threshold = type.threshold
                           ? *type.threshold
                           : static_cast<float>(0.75 * mean_magnitude(groups, group, in, -1, 0));
    if (type.scaled)
      result.scale =
          static_cast<float>(mean_magnitude(groups, group, in, result.threshold, scale_of_nothing));
    return result;
  }
  uint32_t code_of(float x, const GroupFit& fit, uint32_t, int64_t) const {
    return ternary_code(threshold_reference(ternary_thresholds(fit.threshold, 1), x));
  }
  float multiple(uint32_t code) const { return ternary_value(code); }
  ThresholdSpec thresholds(const GroupFit& fit) const {
    return ternary_thresholds(fit.threshold, fit.scale);
  }
};

}  // namespace

Quantizer binary_quantizer(const Binary& type) {
  return type.scaled ? make_grouped(ScaledBinary{!type.one_sided, false, 0})
                     : plain_binary(false, 0);
}

Quantizer stochastic_binary_quantizer(const Binary& like, uint64_t seed) {
  Quantizer q = like.scaled ? make_grouped(ScaledBinary{!like.one_sided, true, seed})
                            : plain_binary(true, seed);
  set_bits_and_limits(q, {like});
  return q;
}

Quantizer ternary_quantizer(const Ternary& type) {
  if (type.scaled || !type.threshold) return make_grouped(GroupedTernary{type});
  const ThresholdSpec spec = ternary_thresholds(*type.threshold, 1);
  ElementwiseFormat format;
  format.reference = [spec](float x, uint64_t, uint32_t) { return threshold_reference(spec, x); };
  format.kernel = [spec](const float* in, float* out, size_t count, uint64_t) {
    threshold_kernel(spec, in, out, count);
  };
  format.coding = coding_of(2, ternary_code, ternary_value);
  return make_elementwise(std::move(format));
}

Quantizer reference_ternary_quantizer(bool scaled) {
  const Ternary like{scaled, {}};
  Quantizer q = make_grouped(GroupedTernary{like, std::numeric_limits<double>::quiet_NaN()});
  set_bits_and_limits(q, {like});
  return q;
}

}  // namespace mase
