// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/kernels/windows.h"

#include <algorithm>

namespace mase::kernels {

std::vector<TapRun> tap_runs(const WindowAxis& axis) {
  // The first tap that is `distance` or more from the first one.
  const auto tap_after = [&](int64_t distance) {
    const int64_t tap = (std::max<int64_t>(0, distance) + axis.dilation - 1) / axis.dilation;
    return std::min(tap, axis.kernel);
  };
  std::vector<TapRun> runs;
  for (int64_t at = 0; at < axis.result; ++at) {
    const int64_t start = axis.place(at, 0), begin = tap_after(-start);
    const int64_t end = std::max(begin, tap_after(axis.size - start));
    if (!runs.empty() && runs.back().begin == begin && runs.back().end == end)
      ++runs.back().count;
    else
      runs.push_back({at, 1, begin, end});
  }
  return runs;
}

Windowing::Windowing(const WindowAxis& height, const WindowAxis& width)
    : height_(height),
      width_(width),
      rows_(std::make_shared<const std::vector<TapRun>>(tap_runs(height))),
      columns_(std::make_shared<const std::vector<TapRun>>(tap_runs(width))) {
  height_.runs = *rows_;
  width_.runs = *columns_;
}

}  // namespace mase::kernels
