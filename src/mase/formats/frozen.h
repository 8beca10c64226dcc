// SPDX-License-Identifier: Apache-2.0
// The numbers a tensor may hold once its scales are fixed. A format whose scales come from the data
// rounds a changed value with other scales; methods that choose roundings one by one (GPTQ, learned
// rounding) need the grid to stand still while they work, whatever the format.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "mase/formats/format.h"

namespace mase {

class FrozenGrid {
 public:
  // The grid on which `quantizer` rounds this tensor. An Error that says why there is none: numbers
  // that are drawn, learned ones, more codes than can be listed.
  FrozenGrid(const Quantizer& quantizer, const Tensor& tensor);

  // The nearest number of the grid for a value that stands at this place of the tensor.
  double round(int64_t element, double value) const;
  // The numbers on both sides of it; twice the same one beyond the ends and on the grid.
  std::pair<double, double> neighbours(int64_t element, double value) const;

  // Of values that share a scale; one where no scale comes from the tensor, or every place has
  // numbers of its own.
  int64_t groups() const {
    return static_cast<int64_t>(std::max({steps_.size(), scales_.size(), size_t{1}}));
  }
  int32_t group_of(int64_t element) const {
    return group_of_.empty() ? 0 : group_of_[static_cast<size_t>(element)];
  }

 private:
  struct Steps {
    double low = 0, high = 0, step = 1, zero = 0;
  };
  double level(size_t index, int64_t element) const;
  double step_value(const Steps& steps, double code) const;
  size_t above(int64_t element, double value) const;  // the first level not below it

  std::vector<Steps> steps_;       // of groups: (k - zero) * step for whole k in [low, high]
  std::vector<float> levels_;      // else ascending, times the scale of the group, or each group's
  std::vector<double> scales_;     // of groups
  bool own_levels_ = false;        // each group has its own
  std::vector<float> table_;       // else every place has its own: [level][element]
  std::vector<int32_t> group_of_;  // by element; empty: one group
  int64_t elements_ = 0;
  size_t count_ = 0;  // levels
};

// The config of a quantizer with the scales it takes from this tensor written down, so that
// rounding changed values uses them; null where its format cannot say them.
Value frozen_config(const Quantizer& quantizer, const Tensor& tensor);

}  // namespace mase
