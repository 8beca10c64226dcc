// SPDX-License-Identifier: Apache-2.0
// Windows that slide over one plane of lanes, [height][width][n]. Taps that a window has beyond an
// edge are left out, so planes need no padding: neighbouring results whose windows have the same
// taps inside are done as one run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace mase::kernels {

// Neighbouring results along one axis, and their taps [begin, end) that lie inside.
struct TapRun {
  int64_t first, count;
  int64_t begin, end;
};

struct WindowAxis {
  int64_t kernel, stride, before, dilation;
  int64_t size, result;
  std::span<const TapRun> runs = {};  // tap_runs of it

  int64_t place(int64_t at, int64_t tap) const { return at * stride - before + tap * dilation; }
};

std::vector<TapRun> tap_runs(const WindowAxis& axis);

struct PlaneWindows {
  WindowAxis height, width;
  int64_t n;

  int64_t taps() const { return height.kernel * width.kernel; }
};

// The same with the runs they refer to.
class Windowing {
 public:
  Windowing(const WindowAxis& height, const WindowAxis& width);
  PlaneWindows of(int64_t n) const { return {height_, width_, n}; }

 private:
  WindowAxis height_, width_;
  std::shared_ptr<const std::vector<TapRun>> rows_, columns_;
};

// The taps inside of the windows of one run, and how far apart they are.
struct Window {
  int64_t rows, columns;
  int64_t row_step, column_step;

  bool empty() const { return rows <= 0 || columns <= 0; }
};

// The results of one row in a run of columns.
struct WindowRun {
  Window window;
  int64_t tap;   // the number of the first tap inside
  int64_t from;  // where it is in x for the first result
  int64_t to;    // where the first result is
  int64_t
      pieces;  // of `lanes` neighbouring lanes each, `step` apart in x and `lanes` in the result
  int64_t lanes, step;
};

// The runs of row y of the results, whose windows have the taps of `rows` inside, the first of them
// in row `place` of x.
template <class Visit>
void each_run_of_row(const PlaneWindows& s, const TapRun& rows, int64_t place, int64_t y,
                     const Visit& visit) {
  const WindowAxis &h = s.height, &w = s.width;
  const bool together = w.stride == 1;
  for (const TapRun& columns : w.runs) {
    const Window window{rows.end - rows.begin, columns.end - columns.begin,
                        h.dilation * w.size * s.n, w.dilation * s.n};
    const int64_t from = place * w.size + w.place(columns.first, columns.begin);
    visit(WindowRun{window, rows.begin * w.kernel + columns.begin, window.empty() ? 0 : from * s.n,
                    (y * w.result + columns.first) * s.n, together ? 1 : columns.count,
                    together ? columns.count * s.n : s.n, w.stride * s.n});
  }
}

template <class Visit>
void each_run(const PlaneWindows& s, const Visit& visit) {
  const WindowAxis& h = s.height;
  for (const TapRun& rows : h.runs)
    for (int64_t y = rows.first; y < rows.first + rows.count; ++y)
      each_run_of_row(s, rows, h.place(y, rows.begin), y, visit);
}

// Runs whose windows have the same taps inside, one below the other: the first of them, how many
// there are, and how far the next is from it in x and in the result.
struct WindowBlock {
  WindowRun first;
  int64_t rows, from_step, to_step;

  WindowRun row(int64_t i) const {
    WindowRun run = first;
    run.from += i * from_step;
    run.to += i * to_step;
    return run;
  }
};

template <class Visit>
void each_block(const PlaneWindows& s, const Visit& visit) {
  const WindowAxis& h = s.height;
  for (const TapRun& rows : h.runs)
    each_run_of_row(
        s, rows, h.place(rows.first, rows.begin), rows.first, [&](const WindowRun& run) {
          visit(WindowBlock{run, rows.count, run.window.empty() ? 0 : h.stride * s.width.size * s.n,
                            s.width.result * s.n});
        });
}

// For plain loops: visit(row, column) of every result, and visit(tap, place in x) of every tap
// inside of one.
template <class Visit>
void each_result(const PlaneWindows& s, const Visit& visit) {
  for (int64_t row = 0; row < s.height.result; ++row)
    for (int64_t column = 0; column < s.width.result; ++column) visit(row, column);
}

template <class Visit>
void each_tap(const PlaneWindows& s, int64_t row, int64_t column, const Visit& visit) {
  for (int64_t ky = 0; ky < s.height.kernel; ++ky)
    for (int64_t kx = 0; kx < s.width.kernel; ++kx) {
      const int64_t y = s.height.place(row, ky), x = s.width.place(column, kx);
      if (y >= 0 && y < s.height.size && x >= 0 && x < s.width.size)
        visit(ky * s.width.kernel + kx, (y * s.width.size + x) * s.n);
    }
}

}  // namespace mase::kernels
