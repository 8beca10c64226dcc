// SPDX-License-Identifier: Apache-2.0
// A tensor seen along one dimension: `outer` x `size` x `inner`.
#pragma once

#include <cmath>

#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"

namespace mase {

struct Along {
  size_t dim = 0, outer = 1, size = 1, inner = 1;

  Along(const Shape& shape, int64_t wanted)
      : dim(static_cast<size_t>(checked_dim(wanted, shape.size()))) {
    for (size_t i = 0; i < shape.size(); ++i)
      (i < dim ? outer : i == dim ? size : inner) *= static_cast<size_t>(shape[i]);
  }
  size_t place(size_t o, size_t k, size_t i) const { return (o * size + k) * inner + i; }
};

// The entry of a dimension that a number of data means.
inline size_t checked_index(double number, int64_t size) {
  if (!(number >= 0 && number < static_cast<double>(size)) || number != std::floor(number))
    throw Error("", fmt::format("number {} for a dimension of {}", number, size),
                "numbers go from 0 to the size less 1");
  return static_cast<size_t>(number);
}

// The shape without the dimension, or with size 1 in its place.
inline Shape reduced_shape(const Shape& shape, size_t dim, bool keep) {
  Shape result = shape;
  if (shape.empty()) return result;
  if (keep)
    result[dim] = 1;
  else
    result.erase(result.begin() + static_cast<std::ptrdiff_t>(dim));
  return result;
}

// The number of one of several results: negative ones count from the end.
inline int64_t checked_result(const Value& attributes, int64_t count) {
  int64_t result = attributes["result"].as_int();
  if (result < 0) result += count;
  if (result < 0 || result >= count)
    throw Error("", fmt::format("result {} of {}", attributes["result"].as_int(), count),
                "results are numbered from 0");
  return result;
}

inline Field result_field() { return integer_field("result", "which of the results", 0); }

}  // namespace mase
