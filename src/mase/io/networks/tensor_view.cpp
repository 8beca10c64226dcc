// SPDX-License-Identifier: Apache-2.0
#include "mase/io/networks/tensor_view.h"

#include <algorithm>
#include <cstring>

namespace mase {
namespace {

// Truth values have one byte; other bytes than 0 and 1 are no C++ bool.
bool all_truth_values(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte{1}; });
}

void clean_truth_values(Tensor& tensor) {
  std::byte* at = tensor.mutable_raw();
  for (size_t i = 0; i < tensor.bytes(); ++i)
    at[i] = at[i] == std::byte{0} ? std::byte{0} : std::byte{1};
}

bool row_major(const Shape& shape, const std::vector<int64_t>& strides) {
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

}  // namespace

Tensor view_or_copy(const Shape& shape, DType dtype, std::span<const std::byte> bytes,
                    const std::shared_ptr<const void>& owner, MemoryBudget& budget,
                    const std::string& place) {
  const size_t size = static_cast<size_t>(element_count(shape)) * dtype_size(dtype);
  bytes = bytes.first(size);
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % dtype_size(dtype) == 0;
  const bool clean = dtype != DType::boolean || all_truth_values(bytes);
  if (aligned && clean) return Tensor(shape, dtype, bytes.data(), owner);
  budget.charge(size + 64, place);
  Tensor copy(shape, dtype);
  if (size > 0) std::memcpy(copy.mutable_raw(), bytes.data(), size);
  if (!clean) clean_truth_values(copy);
  return copy;
}

Tensor view_or_gather(const Shape& shape, const std::vector<int64_t>& strides, DType dtype,
                      std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                      MemoryBudget& budget, const std::string& place) {
  const int64_t count = element_count(shape);
  if (count == 0) return Tensor(shape, dtype);
  if (row_major(shape, strides)) return view_or_copy(shape, dtype, bytes, owner, budget, place);
  const size_t size = dtype_size(dtype);
  budget.charge(static_cast<size_t>(count) * size + 64, place);
  Tensor tensor(shape, dtype);
  std::byte* out = tensor.mutable_raw();
  Shape index(shape.size(), 0);
  size_t from = 0;  // in elements
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(out + static_cast<size_t>(i) * size, bytes.data() + from * size, size);
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += static_cast<size_t>(strides[axis]);
      if (++index[axis] < shape[axis]) break;
      from -= static_cast<size_t>(strides[axis]) * static_cast<size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  if (dtype == DType::boolean) clean_truth_values(tensor);
  return tensor;
}

}  // namespace mase
