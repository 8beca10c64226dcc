// SPDX-License-Identifier: Apache-2.0
// Groups of values that share numbers: a scale, a threshold, a width. The whole tensor, every row
// of the last dimension, every entry of one dimension, or every value by itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mase/base/tensor.h"

namespace mase {

struct Granularity {
  enum class Kind {
    tensor,
    row,      // the last dimension runs inside a group
    axis,     // one group per entry of `axis`
    element,  // one per value; the entries of a batch share theirs
    first,    // one per entry of dimension 0; a vector is one group
    run,    // `size` consecutive values of a row, which is all behind dimension 0; a vector is one
            // row, and the last group of a row may be shorter
    block,  // `size` consecutive values of the last dimension, which is a multiple of it
  };
  Kind kind = Kind::tensor;
  int64_t axis = 0;    // negative counts from the end
  bool batch = false;  // element: dimension 0 is a batch
  int64_t size = 0;    // of runs and blocks

  bool operator==(const Granularity&) const = default;
};

// Values that lie together.
struct Run {
  int64_t offset, length;
};

// The values of group g lie at (o * groups + g) * inner + i for all o < outer, i < inner; with
// `row` > 0 groups do not reach over rows of so many values.
struct Grouping {
  int64_t outer = 1, groups = 1, inner = 1;
  int64_t row = 0;

  Run run(int64_t o, int64_t group) const {
    if (row == 0) return {(o * groups + group) * inner, inner};
    const int64_t in_row = (row + inner - 1) / inner, at = group % in_row * inner;
    return {group / in_row * row + at, std::min(inner, row - at)};
  }
  int64_t group_of(int64_t element) const {
    if (row == 0) return element / inner % groups;
    return element / row * ((row + inner - 1) / inner) + element % row / inner;
  }

  template <class Visit>
  void for_each(int64_t group, const Visit& visit) const {
    for (int64_t o = 0; o < outer; ++o) {
      const Run found = run(o, group);
      for (int64_t i = found.offset; i < found.offset + found.length; ++i) visit(i);
    }
  }
  // visit(group, runs)
  template <class Visit>
  void for_each_group(const Visit& visit) const {
    std::vector<Run> runs(static_cast<size_t>(outer));
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t o = 0; o < outer; ++o) runs[static_cast<size_t>(o)] = run(o, g);
      visit(g, std::span<const Run>(runs));
    }
  }
  // visit(group, first value, count) for the runs of all groups in the order of memory.
  template <class Visit>
  void for_each_run(const Visit& visit) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t g = 0; g < groups; ++g) {
        const Run found = run(o, g);
        visit(g, found.offset, static_cast<size_t>(found.length));
      }
  }
};

Grouping grouping(const Shape& shape, const Granularity& granularity);

}  // namespace mase
