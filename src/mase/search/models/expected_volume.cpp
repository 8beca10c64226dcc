// SPDX-License-Identifier: Apache-2.0
#include "mase/search/models/expected_volume.h"

#include <algorithm>
#include <cmath>

namespace mase::search {

ExpectedVolume::ExpectedVolume(const std::vector<Losses>& front, const Losses& reference,
                               const Losses& lowest)
    : axes_(reference.size()) {
  std::vector<Losses> members;
  for (const Losses& one : front) {
    bool inside = true;
    for (size_t k = 0; k < reference.size(); ++k) inside = inside && one[k] < reference[k];
    if (inside) members.push_back(one);
  }
  for (size_t k = 0; k < reference.size(); ++k) {
    Axis& axis = axes_[k];
    for (const Losses& one : members) axis.ends.push_back(one[k]);
    axis.ends.push_back(reference[k]);
    std::sort(axis.ends.begin(), axis.ends.end());
    axis.ends.erase(std::unique(axis.ends.begin(), axis.ends.end()), axis.ends.end());
    // What lies below the best is the widest interval: it is cut further.
    constexpr int parts = 6;
    const double first = axis.ends.front(), width = std::max(0.0, first - lowest[k]) / parts;
    std::vector<double> further;
    for (int i = parts; i > 0; --i)
      if (width > 0) further.push_back(first - width * i);
    axis.ends.insert(axis.ends.begin(), further.begin(), further.end());
    for (size_t i = 0; i + 1 < axis.ends.size(); ++i) {
      const double half = (axis.ends[i + 1] - axis.ends[i]) / 2;
      const double middle = axis.ends[i] + half, offset = half / std::sqrt(3.0);
      axis.nodes.push_back(middle - offset);
      axis.nodes.push_back(middle + offset);
      axis.lengths.push_back(half);
    }
  }
  std::vector<uint32_t> box(2 * reference.size());
  cut(std::move(members), reference.size(), box);
}

// Slabs along the last of the dimensions: between two neighbouring figures the same members are
// below, and what they leave free of the other dimensions is cut the same way.
void ExpectedVolume::cut(std::vector<Losses> members, size_t dimensions,
                         std::vector<uint32_t>& box) {
  const size_t k = dimensions - 1;
  const Axis& axis = axes_[k];
  const auto index = [&](double end) {
    return static_cast<uint32_t>(std::lower_bound(axis.ends.begin(), axis.ends.end(), end) -
                                 axis.ends.begin());
  };
  std::sort(members.begin(), members.end(),
            [k](const Losses& a, const Losses& b) { return a[k] < b[k]; });
  if (k == 0) {
    box[0] = 0;
    box[1] = members.empty() ? static_cast<uint32_t>(axis.ends.size() - 1) : index(members[0][0]);
    if (box[1] == 0) return;
    boxes_.insert(boxes_.end(), box.begin(), box.end());
    ++count_;
    return;
  }
  std::vector<Losses> below;
  uint32_t low = 0;
  for (size_t i = 0; i <= members.size(); ++i) {
    const auto high =
        i < members.size() ? index(members[i][k]) : static_cast<uint32_t>(axis.ends.size() - 1);
    if (high > low) {
      box[2 * k] = low;
      box[2 * k + 1] = high;
      cut(below, k, box);
      low = high;
    }
    if (i < members.size()) below.push_back(members[i]);
  }
}

double ExpectedVolume::expect(std::span<const std::vector<double>> below) const {
  // Integrals up to each end.
  thread_local std::vector<std::vector<double>> integrals;
  integrals.resize(axes_.size());
  for (size_t k = 0; k < axes_.size(); ++k) {
    const Axis& axis = axes_[k];
    integrals[k].assign(1, 0.0);
    for (size_t i = 0; i < axis.lengths.size(); ++i)
      integrals[k].push_back(integrals[k].back() +
                             axis.lengths[i] * (below[k][2 * i] + below[k][2 * i + 1]));
  }
  double sum = 0;
  const size_t width = 2 * axes_.size();
  for (size_t b = 0; b < count_; ++b) {
    const uint32_t* box = &boxes_[b * width];
    double product = 1;
    for (size_t k = 0; k < axes_.size(); ++k)
      product *= integrals[k][box[2 * k + 1]] - integrals[k][box[2 * k]];
    sum += product;
  }
  return sum;
}

}  // namespace mase::search
