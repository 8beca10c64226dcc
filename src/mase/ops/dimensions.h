// SPDX-License-Identifier: Apache-2.0
// Dimension numbers as PyTorch takes them: negative ones count from the end.
#pragma once

#include <algorithm>
#include <vector>

#include "mase/base/broadcast.h"
#include "mase/ir/op.h"

namespace mase {

inline int64_t checked_dim(int64_t dim, size_t rank) {
  const int64_t limit = std::max<int64_t>(static_cast<int64_t>(rank), 1);  // a scalar has dim 0
  if (dim < -limit || dim >= limit)
    throw Error("", fmt::format("dimension {} of {}", dim, rank),
                fmt::format("dimensions go from {} to {}", -limit, limit - 1));
  return from_front(dim, static_cast<size_t>(limit));
}

// Null: all. A number: that one. A list: those, each once; an empty list means all, as PyTorch's.
inline std::vector<int64_t> checked_dims(const Value& dims, size_t rank) {
  std::vector<int64_t> result;
  if (dims.is_int()) result = {checked_dim(dims.as_int(), rank)};
  if (dims.is_list())
    for (const int64_t dim : dims.as_int_list("dim")) {
      const int64_t checked = checked_dim(dim, rank);
      if (std::count(result.begin(), result.end(), checked))
        throw Error("", fmt::format("dimension {} is listed twice", dim));
      result.push_back(checked);
    }
  if (result.empty())
    for (size_t i = 0; i < rank; ++i) result.push_back(static_cast<int64_t>(i));
  if (rank == 0) result.clear();
  std::sort(result.begin(), result.end());
  return result;
}

// For Field::check: a dimension, or a list of them.
inline std::optional<std::string> dims_fault(const Value& value) {
  const List dims = value.is_list() ? value.as_list() : List{value};
  for (const Value& dim : dims)
    if (!dim.is_int()) return "expected a dimension or a list of dimensions";
  return {};
}

}  // namespace mase
