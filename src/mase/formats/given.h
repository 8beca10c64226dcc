// SPDX-License-Identifier: Apache-2.0
// Numbers of formats (scales, zero points) that stand in the config: one for the tensor, or one for
// each entry of a dimension or each block.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/base/schema.h"
#include "mase/formats/groups.h"

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

}  // namespace mase
