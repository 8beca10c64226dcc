// SPDX-License-Identifier: Apache-2.0
// One bit per value. Bipolar: +1 for x >= 0, else -1. Otherwise, as MASE: the mean magnitude of the
// values under the same first index where x > 0, and 0 elsewhere; `symmetric` makes that
// +mean and -mean (XNOR-Net: Rastegari et al., 2016). Stochastic: +1 with probability
// clamp((x + 1) / 2, 0, 1). Any rank; a vector is one group.
#include "mase/base/fields.h"
#include "mase/formats/few_valued.h"
#include "mase/formats/format.h"
#include "mase/formats/rounding.h"

namespace mase::binary_format {
namespace {

Binary parse(const Value& config) {
  const bool scaled = !config["bipolar"].as_bool();
  return {scaled, scaled && !config["symmetric"].as_bool()};
}

TypeOrReason type(const Value& config) {
  if (config["stochastic"].as_bool()) return "its signs are drawn at random";
  return NumberType{parse(config)};
}

Rounder drawn(const Value& config) {
  return stochastic_binary(parse(config), static_cast<uint64_t>(config["seed"].as_int()));
}

const Register<FormatRecord> registered{{
    .name = "binary",
    .class_suffix = "Binary",
    .summary = "one bit: -1 and +1, or 0 and the mean magnitude",
    .schema = {{integer_field("width", "accepted for MASE's files; a binary value has one bit")
                    .between(1, 64)
                    .without_effect(),
                boolean_field("stochastic", "draw the sign with probability (x + 1) / 2", false),
                boolean_field("bipolar", "-1 and +1, unscaled", false),
                boolean_field("symmetric",
                              "scaled only: minus the mean instead of 0 for negative values",
                              false),
                seed_field(), ste_field()}},
    .type = type,
    .make = drawn,
    .precision = [](const Value&) { return std::vector<int64_t>{1}; },
    .ladder = [](double) -> std::vector<Value> {
      return {Dict{{"bipolar", true}}, Dict{{"symmetric", true}}};
    },
}};

}  // namespace
}  // namespace mase::binary_format
