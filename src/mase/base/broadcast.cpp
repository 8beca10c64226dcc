// SPDX-License-Identifier: Apache-2.0
#include "mase/base/broadcast.h"

#include <algorithm>

namespace mase {

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (size_t i = 1; i <= rank; ++i) {
    const int64_t left = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t right = i <= b.size() ? b[b.size() - i] : 1;
    if (left != right && left != 1 && right != 1) return {};
    out[rank - i] = left == 1 ? right : left;
  }
  return out;
}

std::vector<size_t> broadcast_places(const Shape& operand, const Shape& out) {
  const size_t count = static_cast<size_t>(element_count(out));
  // Stride of each dimension of `out` in the operand; 0 where it is repeated.
  std::vector<size_t> strides(out.size(), 0);
  size_t stride = 1;
  for (size_t i = 1; i <= operand.size(); ++i) {
    const int64_t size = operand[operand.size() - i];
    if (size != 1) strides[out.size() - i] = stride;
    stride *= static_cast<size_t>(size);
  }
  std::vector<size_t> places(count);
  std::vector<int64_t> index(out.size(), 0);
  size_t place = 0;
  for (size_t i = 0; i < count; ++i) {
    places[i] = place;
    for (size_t d = out.size(); d-- > 0;) {
      place += strides[d];
      if (++index[d] < out[d]) break;
      place -= strides[d] * static_cast<size_t>(out[d]);
      index[d] = 0;
    }
  }
  return places;
}

void row_major_strides(const Shape& shape, int64_t* strides) {
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
}

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  row_major_strides(shape, strides.data());
  return strides;
}

}  // namespace mase
