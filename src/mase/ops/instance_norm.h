// SPDX-License-Identifier: Apache-2.0
// InstanceNorm: each channel of each sample normalised over its positions, without running
// statistics (Ulyanov et al., 2016). PyTorch has one class per number of position axes; what they
// mean is the same, so each file names its class and this is the rest.
#pragma once

#include <string>

#include "mase/ops/group_norm.h"

namespace mase {

inline OpRecord instance_norm_record(std::string name, std::string class_name) {
  return group_norm_record(
      {.name = std::move(name),
       .class_name = std::move(class_name),
       .mase_type = {},
       .summary = "normalises each channel of each sample",
       .attributes = {{{.name = "num_features",
                        .type = FieldType::integer,
                        .help = "channels, the size of dim 1",
                        .required = true,
                        .minimum = 1},
                       {.name = "eps",
                        .type = FieldType::number,
                        .default_value = 1e-5,
                        .help = "added to the variance",
                        .minimum = 0},
                       {.name = "momentum",
                        .type = FieldType::number,
                        .default_value = 0.1,
                        .help = "kept for PyTorch's printed form; there are no running statistics"},
                       {.name = "affine",
                        .type = FieldType::boolean,
                        .default_value = false,
                        .help = "learn a scale and a shift"}}},
       .repr =
           [](const Value& attributes) {
             return fmt::format("{}, eps={}, momentum={}, affine={}, track_running_stats=False",
                                attributes["num_features"].as_int(), python_repr(attributes["eps"]),
                                python_repr(attributes["momentum"]),
                                python_repr(attributes["affine"]));
           }},
      [](const Value&, int64_t channels) { return channels; }, "num_features");
}

}  // namespace mase
