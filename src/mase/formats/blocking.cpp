// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/blocking.h"

#include <algorithm>

#include "mase/base/error.h"

namespace mase {
namespace {

int64_t blocks_along(int64_t size, int64_t block) { return (size + block - 1) / block; }

}  // namespace

int64_t Blocking::count() const {
  int64_t n = 1;
  for (size_t i = 0; i < shape.size(); ++i) n *= blocks_along(shape[i], block[i]);
  return n;
}

void Blocking::for_each(const std::function<void(int64_t, const std::vector<Run>&)>& visit) const {
  const size_t rank = shape.size();
  if (element_count(shape) == 0) return;
  if (rank == 0) return visit(0, {{0, 1}});
  Shape strides(rank, 1);
  for (size_t i = rank - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
  const int64_t blocks = count();
  Shape at(rank, 0);  // block coordinates
  std::vector<Run> runs;
  for (int64_t number = 0; number < blocks; ++number) {
    runs.clear();
    Shape first(rank), extent(rank);
    int64_t rows = 1;
    for (size_t i = 0; i < rank; ++i) {
      first[i] = at[i] * block[i];
      extent[i] = std::min(block[i], shape[i] - first[i]);
      if (i + 1 < rank) rows *= extent[i];
    }
    for (int64_t row = 0; row < rows; ++row) {
      int64_t rest = row, offset = first[rank - 1];
      for (size_t i = rank - 1; i-- > 0;) {
        offset += (first[i] + rest % extent[i]) * strides[i];
        rest /= extent[i];
      }
      runs.push_back({offset, extent[rank - 1]});
    }
    visit(number, runs);
    for (size_t i = rank; i-- > 0;) {
      if (++at[i] < blocks_along(shape[i], block[i])) break;
      at[i] = 0;
    }
  }
}

Blocking block_form(const Block& type, const Shape& shape) {
  return type.axis ? axis_blocking(shape, type.size.front(), *type.axis)
                   : mase_blocking(shape, type.size, type.skip_first_dim);
}

Blocking mase_blocking(const Shape& shape, const std::vector<int64_t>& block_size,
                       bool skip_first_dim) {
  Blocking blocking{shape, Shape(shape.size(), 1)};
  const size_t rank = shape.size();
  size_t first = 0;
  if (skip_first_dim && rank >= 2) first = std::max<size_t>(1, rank >= 4 ? rank - 2 : 1);
  for (size_t i = first; i < rank; ++i) {
    const size_t from_end = rank - i;
    const int64_t wanted =
        from_end <= block_size.size() ? block_size[block_size.size() - from_end] : -1;
    const int64_t size = std::max<int64_t>(shape[i], 1);
    blocking.block[i] = wanted < 0 || wanted > size ? size : wanted;
  }
  return blocking;
}

Blocking axis_blocking(const Shape& shape, int64_t size, int64_t axis) {
  Blocking blocking{shape, Shape(shape.size(), 1)};
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank == 0) return blocking;
  if (axis < -rank || axis >= rank)
    throw Error("axis", fmt::format("{} is out of range for shape {}", axis, shape_text(shape)),
                fmt::format("give -{} to {}", rank, rank - 1));
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  blocking.block[at] = std::clamp<int64_t>(size, 1, std::max<int64_t>(shape[at], 1));
  return blocking;
}

}  // namespace mase
