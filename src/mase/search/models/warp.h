// SPDX-License-Identifier: Apache-2.0
// A monotone map that makes figures look normal: a few trials that are far worse than all others
// would otherwise leave a Gaussian process no eye for the differences between the good ones. The
// power is the one with the largest likelihood (Yeo and Johnson, "A new family of power
// transformations", 2000).
#pragma once

#include <vector>

namespace mase::search {

class Warp {
 public:
  // For these figures; equal ones are left as they are.
  explicit Warp(const std::vector<double>& figures);

  double operator()(double figure) const;  // mean 0 and deviation 1 over the figures
  double back(double warped) const;  // the figure that gives this, or the nearest that is finite

 private:
  double middle_ = 0, scale_ = 1;  // of the figures: their median, and what half of them differ by
  double power_ = 1;
  double mean_ = 0, deviation_ = 1;  // after the power
};

}  // namespace mase::search
