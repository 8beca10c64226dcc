// SPDX-License-Identifier: Apache-2.0
// Quantizers whose groups are so many consecutive values of a row, a row being all that stands
// behind dimension 0 (a vector is one row); the last group of a row may be shorter.
#pragma once

#include <functional>
#include <vector>

#include "mase/formats/format.h"

namespace mase {

// What one group does. `numbers` are what the group shares: found from its values, or given.
struct RunRule {
  int width = 4;              // bits of a code
  double shared_bits = 32;    // of what a group shares
  std::vector<double> given;  // all groups' numbers, `per_group` each; empty: from the data
  size_t per_group = 1;
  QuantizerPtr scale = {};  // what a scale found from values is rounded to; it is numbers[0]
  std::function<std::vector<double>(const float* in, int64_t count)> find;
  std::function<float(const std::vector<double>& numbers, float x)> round;
  std::function<uint32_t(const std::vector<double>& numbers, float x)> code;
  std::function<float(const std::vector<double>& numbers, uint32_t code)> value;
};
Quantizer run_quantizer(RunRule rule, int64_t size);

// The group of every value of a tensor.
std::vector<int32_t> run_groups(const Shape& shape, int64_t size);

Field group_size_field();

// The format of the scales themselves, as a config says it, and its field.
Field scale_format_field();
QuantizerPtr scale_format(const Value& config);

}  // namespace mase
