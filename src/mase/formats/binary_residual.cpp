// SPDX-License-Identifier: Apache-2.0
// Residual binarisation (ReBNet: Ghasemzadeh et al., 2018): level l adds sign(r_l) * gamma_l, where
// r_0 = x and r_(l+1) = r_l - sign(r_l) * gamma_l. One bit per level. Zero counts as positive: no
// code is zero.
#include <bit>
#include <cmath>
#include <vector>

#include "mase/base/fields.h"
#include "mase/formats/config.h"
#include "mase/formats/kernels/threshold.h"
#include "mase/formats/rounding.h"

namespace mase::binary_residual_format {
namespace {

Rounder make(const Value& config) {
  const auto levels = static_cast<size_t>(config["levels"].as_int());
  std::vector<float> gamma;
  if (config["means"].is_list()) {
    for (const Value& mean : config["means"].as_list())
      gamma.push_back(static_cast<float>(std::fabs(mean.as_double("means"))));
    if (gamma.size() != levels)
      throw config_error(config, "means",
                         fmt::format("{} means for {} levels", gamma.size(), levels),
                         "give one mean per level, largest first");
  } else {
    // Multiples of one number of few bits: then all sums are exact, sums that should cancel do, and
    // rounding twice is rounding once. Two levels get by with a plain third.
    const size_t total = levels * (levels + 1) / 2;
    double unit = 1.0 / static_cast<double>(total);
    if (levels > 2) {
      const double last_place = std::ldexp(1.0, std::ilogb(unit) - 22 + std::bit_width(total));
      unit = std::nearbyint(unit / last_place) * last_place;
    }
    for (size_t l = levels; l > 0; --l)
      gamma.push_back(static_cast<float>(static_cast<double>(l) * unit));
  }
  float sum = 0;
  for (const float g : gamma) sum += g;
  Rounder rounder;
  rounder.width = static_cast<int>(levels);
  rounder.bits = rounder.width;
  rounder.lowest = -static_cast<double>(sum);
  rounder.largest = sum;
  rounder.one = [gamma](const GroupRun&, float x, uint32_t) {
    return residual_reference(gamma, x);
  };
  rounder.round = [gamma](const GroupRun&, const float* in, float* out, size_t count) {
    residual_kernel(gamma, in, out, count);
  };
  const auto code_of = [gamma](float x) {
    uint32_t code = 0;
    float rest = x;
    for (const float g : gamma) {
      const bool positive = rest >= 0;
      code = code << 1 | (positive ? 1u : 0u);
      rest -= positive ? g : -g;
    }
    return code;
  };
  const auto value_of = [gamma](uint32_t code) {
    float value = 0;
    for (size_t l = 0; l < gamma.size(); ++l)
      value += code >> (gamma.size() - 1 - l) & 1 ? gamma[l] : -gamma[l];
    return value;
  };
  set_codes(rounder, rounder.width, code_of, value_of);
  return rounder;
}

const Register<FormatRecord> registered{{
    .name = "binary_residual",
    .class_suffix = "BinaryResidualSign",
    .summary = "residual binarisation: one bit per level, each level adds plus or minus its mean",
    .schema = {{integer_field("width", "accepted for MASE's files; a value has one bit per level")
                    .between(1, 64)
                    .without_effect(),
                integer_field("levels", "residual levels, one bit each", 2).between(1, 8),
                list_field("means", "the step of each level; (L, L-1, ..., 1) / sum if not given"),
                boolean_field("stochastic", "accepted for MASE's files, without effect", false)
                    .without_effect(),
                boolean_field("bipolar", "accepted for MASE's files, without effect", true)
                    .without_effect(),
                boolean_field("binary_training", "accepted for MASE's files, without effect", true)
                    .without_effect(),
                boolean_field("residual_sign", "accepted for MASE's files, without effect", true)
                    .without_effect(),
                ste_field()}},
    .type = [](const Value&) -> TypeOrReason {
      return "its numbers are sums of signed means, not multiples of one step";
    },
    .make = make,
    .precision =
        [](const Value& config) { return std::vector<int64_t>{config["levels"].as_int()}; },
    .ladder = [](double) -> std::vector<Value> {
      return {Dict{{"levels", 1}}, Dict{{"levels", 2}}};
    },
}};

}  // namespace
}  // namespace mase::binary_residual_format
