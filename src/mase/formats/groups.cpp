// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/groups.h"

#include "mase/base/error.h"

namespace mase {

Grouping grouping(const Shape& shape, const Granularity& granularity) {
  using Kind = Granularity::Kind;
  const int64_t total = element_count(shape);
  const auto rank = static_cast<int64_t>(shape.size());
  Grouping result;
  result.inner = total;
  if (granularity.kind == Kind::tensor || rank == 0) return result;
  if (granularity.kind == Kind::row) {
    result.inner = shape.back();
    result.groups = result.inner ? total / result.inner : 0;
    return result;
  }
  if (granularity.kind == Kind::element) {
    result.inner = 1;
    result.outer = granularity.batch ? shape[0] : 1;
    result.groups = result.outer ? total / result.outer : 0;
    return result;
  }
  if (granularity.kind == Kind::block) {
    result.inner = std::max<int64_t>(granularity.size, 1);
    result.groups = total / result.inner;
    return result;
  }
  if (granularity.kind == Kind::run) {
    result.row = rank == 1 || shape[0] == 0 ? total : total / shape[0];
    result.inner = std::max<int64_t>(1, std::min(granularity.size, result.row));
    if (result.row == 0) return {1, 0, 1, 0};
    result.groups = total / result.row * ((result.row + result.inner - 1) / result.inner);
    if (result.row % result.inner == 0) result.row = 0;
    return result;
  }
  if (granularity.kind == Kind::first && rank < 2) return result;
  const int64_t axis = granularity.kind == Kind::first ? 0 : granularity.axis;
  if (axis < -rank || axis >= rank)
    throw Error("axis", fmt::format("{} is out of range for shape {}", axis, shape_text(shape)),
                fmt::format("give -{} to {}", rank, rank - 1));
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  result.groups = shape[at];
  result.inner = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i < at) result.outer *= shape[i];
    if (i > at) result.inner *= shape[i];
  }
  return result;
}

}  // namespace mase
