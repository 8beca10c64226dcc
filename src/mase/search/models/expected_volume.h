// SPDX-License-Identifier: Apache-2.0
// How much a point is expected to add to the volume that a front covers, where its figures are
// independent and each is known by its distribution function (expected hypervolume improvement:
// Emmerich et al., 2011). What no member of the front dominates is cut into boxes,
//   volume added by y = sum over boxes of the product over k of (high_k - max(low_k, y_k))+
// so the expectation is a sum of products of differences of one integral each: of P(y_k < s) from
// the box's low to its high end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mase/search/study/pareto.h"

namespace mase::search {

class ExpectedVolume {
 public:
  // The front's members that dominate the reference point count. `lowest` says how far down a
  // figure is followed.
  ExpectedVolume(const std::vector<Losses>& front, const Losses& reference, const Losses& lowest);

  // Figures at which the distribution function of objective `k` is wanted, in ascending order.
  const std::vector<double>& nodes(size_t k) const { return axes_[k].nodes; }
  // `below[k][i]`: the probability that figure k is less than nodes(k)[i].
  double expect(std::span<const std::vector<double>> below) const;

  size_t boxes() const { return count_; }

 private:
  struct Axis {
    std::vector<double> ends;     // of intervals
    std::vector<double> nodes;    // two for each interval (Gauss and Legendre's)
    std::vector<double> lengths;  // of intervals, halved: the weight of a node
  };
  void cut(std::vector<Losses> members, size_t dimensions, std::vector<uint32_t>& box);

  std::vector<Axis> axes_;
  std::vector<uint32_t> boxes_;  // for each box and objective: index of its low and its high end
  size_t count_ = 0;
};

}  // namespace mase::search
