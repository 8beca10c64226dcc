// SPDX-License-Identifier: Apache-2.0
// Numbers of formats (scales, zero points) that stand in the config: one for the tensor, or one for
// each entry of a dimension or each block.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/formats/format.h"

namespace mase {

// A number, or a list with one per group.
std::vector<double> given_numbers(const Value& value);
// A field that takes them; each must be `good`.
Field given_field(const char* name, const char* help, std::function<bool(double)> good,
                  const char* wanted);
// granularity = "tensor" | "channel" | "block", the axis of the second and the size of the last.
std::vector<Field> given_granularity_fields();
int64_t given_block(const Value& config);  // of granularity = "block"; else 0
// Errors if lists of numbers differ in length or there is no granularity to say what they are for.
Granularity given_granularity(const Value& config, const std::vector<std::string>& keys);

// Of granularity "run".
Field group_size_field();

// The format of the scales themselves, as a config says it, and its field.
Field scale_format_field();
QuantizerPtr scale_format(const Value& config);
// Scales that are found in values are rounded to that format, if there is one.
Rounder with_scale_format(Rounder rounder, const Value& config);

}  // namespace mase
