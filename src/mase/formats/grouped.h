// SPDX-License-Identifier: Apache-2.0
// The quantizer of formats with a few values per group (scaled binary and ternary): what a code
// means is fitted to the group's data. Groups are the entries of dimension 0; a vector is one.
#pragma once

#include <cmath>
#include <memory>

#include "mase/formats/format.h"
#include "mase/formats/groups.h"
#include "mase/formats/kernels/threshold.h"
#include "mase/formats/rounding.h"

namespace mase {

// What fitting finds: the values of the codes are multiples of the scale.
struct GroupFit {
  float threshold = 0, scale = 1;
};

// The mean magnitude of the finite values above a threshold; `empty` if there are none.
inline double mean_magnitude(const Grouping& groups, int64_t group, const float* in,
                             float threshold, double empty) {
  MagnitudeSum total;
  for (int64_t o = 0; o < groups.outer; ++o)
    add_magnitudes(in + (o * groups.groups + group) * groups.inner,
                   static_cast<size_t>(groups.inner), threshold, total);
  return total.count ? total.sum / static_cast<double>(total.count) : empty;
}

// A Rule has: bits, stochastic, seed,
//   GroupFit fit(groups, group, in), uint32_t code_of(x, fit, key, element) for x not NaN,
//   float multiple(code): the value of the code / scale,
//   ThresholdSpec thresholds(fit): the same rule for the kernel, unless it is stochastic.
template <class Rule>
Quantizer make_grouped(const Rule& given) {
  const auto rule = std::make_shared<const Rule>(given);
  // Calls begin(scale) for every group and visit(element, code, scale) for its values; NaN: code 0.
  const auto sweep = [rule](const float* in, const Shape& shape, uint64_t draw, const auto& begin,
                            const auto& visit) {
    const Grouping groups = first_dimension_groups(shape);
    const uint32_t key = stochastic_key(rule->seed, draw);
    for (int64_t g = 0; g < groups.groups; ++g) {
      const GroupFit fit = rule->fit(groups, g, in);
      begin(fit.scale);
      groups.for_each(g, [&](int64_t i) {
        visit(i, std::isnan(in[i]) ? 0 : rule->code_of(in[i], fit, key, i), fit.scale);
      });
    }
  };
  const auto rounded = [rule, sweep](const float* in, float* out, const Shape& shape,
                                     uint64_t draw) {
    sweep(
        in, shape, draw, [](float) {},
        [&](int64_t i, uint32_t code, float scale) {
          out[i] = std::isnan(in[i]) ? in[i] : rule->multiple(code) * scale;
        });
  };
  Quantizer q;
  q.reference = [rounded](const float* in, float* out, const Shape& shape) {
    rounded(in, out, shape, 0);
  };
  q.quantize = [rule](const float* in, float* out, const Shape& shape) {
    const Grouping groups = first_dimension_groups(shape);
    for (int64_t g = 0; g < groups.groups; ++g) {
      const ThresholdSpec spec = rule->thresholds(rule->fit(groups, g, in));
      for (int64_t o = 0; o < groups.outer; ++o) {
        const int64_t at = (o * groups.groups + g) * groups.inner;
        threshold_kernel(spec, in + at, out + at, static_cast<size_t>(groups.inner));
      }
    }
  };
  if (rule->stochastic) {
    q.quantize = q.reference;
    q.quantize_drawn = rounded;
  }
  q.code_bits = rule->bits;
  q.encode = [sweep](const float* in, const Shape& shape) {
    Quantizer::Codes codes;
    codes.codes.resize(static_cast<size_t>(element_count(shape)));
    sweep(
        in, shape, 0, [&](float scale) { codes.scales.push_back(scale); },
        [&](int64_t i, uint32_t code, float) { codes.codes[static_cast<size_t>(i)] = code; });
    return codes;
  };
  q.decode = [rule](const Quantizer::Codes& codes, float* out, const Shape& shape) {
    const Grouping groups = first_dimension_groups(shape);
    MASE_CHECK(codes.codes.size() == static_cast<size_t>(element_count(shape)) &&
                   codes.scales.size() == static_cast<size_t>(groups.groups),
               "{} codes and {} scales for shape {}", codes.codes.size(), codes.scales.size(),
               shape_text(shape));
    for (int64_t g = 0; g < groups.groups; ++g) {
      const auto scale = static_cast<float>(codes.scales[static_cast<size_t>(g)]);
      groups.for_each(g, [&](int64_t i) {
        out[i] = rule->multiple(codes.codes[static_cast<size_t>(i)]) * scale;
      });
    }
  };
  return q;
}

}  // namespace mase
