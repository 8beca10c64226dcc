// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/tensor_moves.h"

#include <algorithm>
#include <cstring>

namespace mase::onnx {
namespace {

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// The result of this shape whose element [i, j, ...] is the tensor's at start + i * strides[0] +
// ...
Tensor strided(const Tensor& tensor, const Shape& shape, const std::vector<int64_t>& strides,
               int64_t start) {
  Tensor out(shape, tensor.dtype());
  const size_t size = dtype_size(tensor.dtype());
  std::byte* to = out.mutable_raw();
  const std::byte* from = tensor.raw();
  Shape index(shape.size(), 0);
  int64_t place = start;
  for (int64_t i = 0; i < out.numel(); ++i) {
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(place) * size, size);
    for (size_t d = shape.size(); d-- > 0;) {
      place += strides[d];
      if (++index[d] < shape[d]) break;
      place -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return out;
}

// The common case, block by block so that both sides stay in the cache.
Tensor turned_matrix(const Tensor& tensor) {
  const int64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
  Tensor out(Shape{columns, rows}, tensor.dtype());
  const auto* from = reinterpret_cast<const uint32_t*>(tensor.raw());
  auto* to = reinterpret_cast<uint32_t*>(out.mutable_raw());
  constexpr int64_t block = 32;
  for (int64_t r = 0; r < rows; r += block)
    for (int64_t c = 0; c < columns; c += block)
      for (int64_t k = c; k < std::min(c + block, columns); ++k)
        for (int64_t i = r; i < std::min(r + block, rows); ++i)
          to[k * rows + i] = from[i * columns + k];
  return out;
}

}  // namespace

Tensor transposed(const Tensor& tensor, const std::vector<int64_t>& order) {
  if (order == std::vector<int64_t>{1, 0} && dtype_size(tensor.dtype()) == sizeof(uint32_t))
    return turned_matrix(tensor);
  const std::vector<int64_t> strides = strides_of(tensor.shape());
  Shape shape;
  std::vector<int64_t> turned;
  for (const int64_t dim : order) {
    shape.push_back(tensor.shape()[static_cast<size_t>(dim)]);
    turned.push_back(strides[static_cast<size_t>(dim)]);
  }
  return strided(tensor, shape, turned, 0);
}

Tensor sliced(const Tensor& tensor, int64_t axis, int64_t start, int64_t step, int64_t count) {
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> strides = strides_of(tensor.shape());
  Shape shape = tensor.shape();
  const int64_t first = count > 0 ? start * strides[at] : 0;
  strides[at] *= step;
  shape[at] = count;
  return strided(tensor, shape, strides, first);
}

Tensor gathered(const Tensor& tensor, int64_t axis, const std::vector<int64_t>& indices,
                const Shape& index_shape) {
  const auto at = static_cast<size_t>(axis);
  const Shape& from = tensor.shape();
  Shape shape(from.begin(), from.begin() + axis);
  shape.insert(shape.end(), index_shape.begin(), index_shape.end());
  shape.insert(shape.end(), from.begin() + axis + 1, from.end());
  Tensor out(shape, tensor.dtype());
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < from.size(); ++i) (i < at ? outer : inner) *= i == at ? 1 : from[i];
  const size_t run = static_cast<size_t>(inner) * dtype_size(tensor.dtype());
  if (run == 0) return out;
  std::byte* to = out.mutable_raw();
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t index : indices) {
      std::memcpy(to, tensor.raw() + static_cast<size_t>(o * from[at] + index) * run, run);
      to += run;
    }
  return out;
}

Tensor expanded(const Tensor& tensor, const Shape& shape) {
  const std::vector<int64_t> own = strides_of(tensor.shape());
  std::vector<int64_t> strides(shape.size(), 0);
  const size_t shift = shape.size() - tensor.shape().size();
  for (size_t i = 0; i < tensor.shape().size(); ++i)
    if (tensor.shape()[i] != 1) strides[i + shift] = own[i];
  return strided(tensor, shape, strides, 0);
}

}  // namespace mase::onnx
