// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/axes.h"

#include <algorithm>
#include <cstring>

#include "mase/engine/kernels/kernels.h"

namespace mase::engine {
namespace {

std::vector<int> significant(const std::vector<int>& axes, const Shape& shape) {
  std::vector<int> result;
  for (const int axis : axes)
    if (shape[static_cast<size_t>(axis)] != 1) result.push_back(axis);
  return result;
}

// A run of axes in a list, one behind the other and in order; where it begins, or nothing.
std::optional<size_t> find_run(const std::vector<int>& list, const std::vector<int>& wanted) {
  const auto place = std::search(list.begin(), list.end(), wanted.begin(), wanted.end());
  if (place == list.end()) return {};
  return static_cast<size_t>(place - list.begin());
}

}  // namespace

Axes Axes::flat(size_t rank) {
  Axes axes;
  for (size_t i = 1; i < rank; ++i) axes.rows.push_back(static_cast<int>(i));
  axes.lanes = {0};
  return axes;
}

Axes Axes::channels(size_t rank) {
  Axes axes;
  axes.rows = {1};
  for (size_t i = 2; i < rank; ++i) axes.lanes.push_back(static_cast<int>(i));
  axes.lanes.push_back(0);
  return axes;
}

Axes Axes::sequence(size_t rank, size_t features) {
  Axes axes;
  for (size_t i = 0; i < rank; ++i)
    (i < rank - features ? axes.lanes : axes.rows).push_back(static_cast<int>(i));
  return axes;
}

bool same_memory(const Shape& shape, const Axes& a, const Axes& b) {
  return significant(a.rows, shape) == significant(b.rows, shape) &&
         significant(a.lanes, shape) == significant(b.lanes, shape);
}

Axes permuted_axes(const Axes& axes, const std::vector<int64_t>& order) {
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    place[static_cast<size_t>(order[i])] = static_cast<int>(i);
  Axes result = axes;
  for (auto* list : {&result.rows, &result.lanes})
    for (int& axis : *list) axis = place[static_cast<size_t>(axis)];
  return result;
}

std::optional<Axes> reshaped_axes(const Shape& from, const Axes& axes, const Shape& to) {
  if (from.empty() || to.empty() || from[0] != to[0]) return {};
  for (const int64_t size : from)
    if (size == 0) return {};
  Axes result = axes;
  const auto drop_ones = [&](std::vector<int>& list) {
    std::erase_if(list, [&](int axis) { return axis > 0 && from[static_cast<size_t>(axis)] == 1; });
  };
  drop_ones(result.rows);
  drop_ones(result.lanes);
  std::vector<int> ones;
  // Groups of axes with the same number of values on both sides, smallest first. New axes are
  // marked by a negative number until all old ones are replaced.
  size_t i = 1, j = 1;
  while (i < from.size() || j < to.size()) {
    std::vector<int> old_axes, new_axes;
    int64_t old_size = 1, new_size = 1;
    const auto take_old = [&] {
      if (from[i] != 1) old_axes.push_back(static_cast<int>(i));
      old_size *= from[i++];
    };
    const auto take_new = [&] {
      if (to[j] != 1) new_axes.push_back(-1 - static_cast<int>(j));
      if (to[j] == 1) ones.push_back(-1 - static_cast<int>(j));
      new_size *= to[j++];
    };
    if (i < from.size()) take_old();
    if (j < to.size()) take_new();
    while (old_size != new_size) {
      if (old_size < new_size && i < from.size())
        take_old();
      else if (new_size < old_size && j < to.size())
        take_new();
      else
        return {};
    }
    if (old_axes.empty()) continue;
    bool placed = false;
    for (auto* list : {&result.rows, &result.lanes}) {
      const auto at = find_run(*list, old_axes);
      if (!at) continue;
      const auto begin = list->begin() + static_cast<std::ptrdiff_t>(*at);
      list->erase(begin, begin + static_cast<std::ptrdiff_t>(old_axes.size()));
      list->insert(list->begin() + static_cast<std::ptrdiff_t>(*at), new_axes.begin(),
                   new_axes.end());
      placed = true;
      break;
    }
    if (!placed) return {};
  }
  result.rows.insert(result.rows.end(), ones.begin(), ones.end());
  for (auto* list : {&result.rows, &result.lanes})
    for (int& axis : *list)
      if (axis < 0) axis = -1 - axis;
  return result;
}

void StridedCopy::add(int64_t size, int64_t from_stride, int64_t to_stride) {
  if (size == 1) return;
  MASE_CHECK(rank < most, "more than {} dimensions", most);
  extent[rank] = size;
  from[rank] = from_stride;
  to[rank++] = to_stride;
}

void StridedCopy::run(const float* in, float* out, bool accumulate) {
  // Outermost first in `to`; what lies together on both sides becomes one dimension.
  const auto swap_dims = [&](size_t a, size_t b) {
    std::swap(extent[a], extent[b]);
    std::swap(from[a], from[b]);
    std::swap(to[a], to[b]);
  };
  for (size_t a = 0; a < rank; ++a)
    for (size_t b = a + 1; b < rank; ++b)
      if (to[b] > to[a] || (to[b] == to[a] && from[b] > from[a])) swap_dims(a, b);
  size_t kept = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (extent[d] == 0) return;
    if (kept > 0 && from[kept - 1] == extent[d] * from[d] && to[kept - 1] == extent[d] * to[d] &&
        to[d] != 0) {
      extent[kept - 1] *= extent[d];
      from[kept - 1] = from[d];
      to[kept - 1] = to[d];
    } else {
      extent[kept] = extent[d];
      from[kept] = from[d];
      to[kept++] = to[d];
    }
  }
  rank = kept;
  const bool sums = rank > 0 && to[rank - 1] == 0;
  const bool add = accumulate || sums;
  if (rank == 0) {
    *out = add ? *out + *in : *in;
    return;
  }
  // The two innermost loops: the dimension that is contiguous in `in` goes next to the innermost,
  // so that a transposition works on blocks both sides of which stay in L1.
  if (rank > 1 && from[rank - 1] != 1)
    for (size_t d = 0; d + 2 < rank; ++d)
      if (from[d] == 1) swap_dims(d, rank - 2);
  const size_t outer = rank > 1 ? rank - 2 : 0;
  const int64_t lines = rank > 1 ? extent[rank - 2] : 1, length = extent[rank - 1];
  const int64_t from_line = rank > 1 ? from[rank - 2] : 0, to_line = rank > 1 ? to[rank - 2] : 0;
  const int64_t from_step = from[rank - 1], to_step = to[rank - 1];
  const bool straight = from_step == 1 && to_step == 1;
  constexpr int64_t block = 32;
  int64_t position[most] = {};
  for (;;) {
    if (straight) {
      for (int64_t line = 0; line < lines; ++line) {
        const float* source = in + line * from_line;
        float* target = out + line * to_line;
        if (add)
          kernels::add_to(target, source, length);
        else
          std::memcpy(target, source, static_cast<size_t>(length) * sizeof(float));
      }
    } else {
      for (int64_t l0 = 0; l0 < lines; l0 += block)
        for (int64_t i0 = 0; i0 < length; i0 += block) {
          const int64_t l1 = std::min(lines, l0 + block), i1 = std::min(length, i0 + block);
          for (int64_t line = l0; line < l1; ++line) {
            const float* source = in + line * from_line;
            float* target = out + line * to_line;
            if (add)
              for (int64_t i = i0; i < i1; ++i) target[i * to_step] += source[i * from_step];
            else
              for (int64_t i = i0; i < i1; ++i) target[i * to_step] = source[i * from_step];
          }
        }
    }
    size_t d = outer;
    while (d-- > 0) {
      in += from[d];
      out += to[d];
      if (++position[d] < extent[d]) break;
      in -= from[d] * extent[d];
      out -= to[d] * extent[d];
      position[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

}  // namespace mase::engine
