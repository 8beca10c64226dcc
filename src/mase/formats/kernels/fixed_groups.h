// SPDX-License-Identifier: Apache-2.0
// Fixed point whose width and point differ from group to group: one per row of a weight, per
// feature of an activation, or per value.
#pragma once

#include <cstdint>
#include <vector>

#include "mase/formats/groups.h"
#include "mase/formats/kernels/elementwise.h"

namespace mase {

// The numbers of all groups, side by side so that neighbouring values load theirs as a vector.
class FixedGroups {
 public:
  void add(const IntegerSpec& spec);
  void finish();  // no more are added

  int64_t count() const { return static_cast<int64_t>(specs_.size()); }
  const IntegerSpec& at(int64_t group) const { return specs_[static_cast<size_t>(group)]; }
  // scale, inverse, low, high, 1 / wrap, wrap; readable a vector beyond the last.
  const float* scale() const { return columns_[0].data(); }
  const float* inverse() const { return columns_[1].data(); }
  const float* low() const { return columns_[2].data(); }
  const float* high() const { return columns_[3].data(); }
  const float* wrap() const { return columns_[4].data(); }

 private:
  std::vector<IntegerSpec> specs_;
  std::vector<float> columns_[5];
};

// All groups round the same way, and not at random. Equal to integer_reference with each value's
// own spec.
void fixed_groups_kernel(const FixedGroups& groups, const Grouping& grouping, const float* in,
                         float* out);

}  // namespace mase
