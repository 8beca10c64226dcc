// SPDX-License-Identifier: Apache-2.0
// Quantizers whose numbers (scales, zero points) stand in the config: one for the tensor, or one
// for each entry of a dimension.
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

// What one group does to values: the fast way, and one by one; and the codes of values, none for
// NaN, which gets the code of zero.
struct GivenRule {
  std::function<void(int64_t group, const float* in, float* out, size_t count)> kernel;
  std::function<float(int64_t group, float x)> reference;
  std::function<uint32_t(int64_t group, float x)> code = {};  // empty: there are none
  std::function<float(int64_t group, uint32_t code)> value = {};
  int64_t groups = 1;
  int width = 8;      // bits of a code
  int64_t block = 0;  // above 0: so many values of the last dimension are a group
};
Quantizer given_quantizer(GivenRule rule, const Granularity& granularity);

}  // namespace mase
