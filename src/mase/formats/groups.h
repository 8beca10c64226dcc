// SPDX-License-Identifier: Apache-2.0
// Groups of values that share numbers: a scale, a threshold, a width. The whole tensor, every row
// of the last dimension, every entry of one dimension, or every value by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mase/base/tensor.h"

namespace mase {

struct Granularity {
  enum class Kind {
    tensor,
    row,      // the last dimension runs inside a group
    axis,     // one group per entry of `axis`
    element,  // one per value; the entries of a batch share theirs
  };
  Kind kind = Kind::tensor;
  int64_t axis = 0;    // negative counts from the end
  bool batch = false;  // element: dimension 0 is a batch

  bool operator==(const Granularity&) const = default;
};

// The values of group g lie at (o * groups + g) * inner + i for all o < outer, i < inner.
struct Grouping {
  int64_t outer = 1, groups = 1, inner = 1;

  template <class Visit>
  void for_each(int64_t group, const Visit& visit) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t first = (o * groups + group) * inner;
      for (int64_t i = first; i < first + inner; ++i) visit(i);
    }
  }
  // visit(group, first value, count) for the runs of values that lie together.
  template <class Visit>
  void for_each_run(const Visit& visit) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t g = 0; g < groups; ++g)
        visit(g, (o * groups + g) * inner, static_cast<size_t>(inner));
  }
};

Grouping grouping(const Shape& shape, const Granularity& granularity);
// One group per entry of dimension 0; a vector is one group.
Grouping first_dimension_groups(const Shape& shape);

}  // namespace mase
