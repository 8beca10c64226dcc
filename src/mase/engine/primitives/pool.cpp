// SPDX-License-Identifier: Apache-2.0
// pool: the maximum or mean of each window of each channel. Padding is never the maximum; the first
// of equal maxima takes the gradient, as in PyTorch.
#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"

namespace mase::engine::pool_primitive {
namespace {

struct Geometry {
  int64_t kernel[2], stride[2], before[2], after[2], dilation[2], size[2], result[2];
  int64_t channels, x_stride, y_stride;
  bool maximum, count_padding;

  // Taps of result row or column `at` that lie inside, and where they are in x.
  template <class Visit>
  void taps(int axis, int64_t at, const Visit& visit) const {
    for (int64_t k = 0; k < kernel[axis]; ++k) {
      const int64_t place = at * stride[axis] - before[axis] + k * dilation[axis];
      if (place >= 0 && place < size[axis]) visit(place);
    }
  }
  double divisor(int axis, int64_t at) const {  // of the mean, along this axis
    const int64_t begin = at * stride[axis] - before[axis];
    const int64_t end = std::min(begin + kernel[axis], size[axis] + after[axis]);
    if (count_padding) return static_cast<double>(end - begin);
    return static_cast<double>(std::min(end, size[axis]) - std::max<int64_t>(begin, 0));
  }
};

Geometry geometry_of(const Plan& plan, const Primitive& p) {
  const auto& own = p.as<PoolPayload>();
  const Shape &x = plan.at(p.in[0]).shape, &y = plan.at(p.out).shape;
  Geometry g{};
  const size_t missing = 2 - own.windows.kernel.size();
  for (size_t i = 0; i < 2; ++i) {
    const bool given = i >= missing;
    const size_t j = i - missing;
    g.kernel[i] = given ? own.windows.kernel[j] : 1;
    g.stride[i] = given ? own.windows.stride[j] : 1;
    g.before[i] = given ? own.windows.padding_before[j] : 0;
    g.after[i] = given ? own.windows.padding_after[j] : 0;
    g.dilation[i] = given ? own.windows.dilation[j] : 1;
    g.size[i] = given ? x[j + 2] : 1;
    g.result[i] = given ? y[j + 2] : 1;
  }
  g.channels = x[1];
  g.x_stride = plan.row_stride(p.in[0]);
  g.y_stride = plan.row_stride(p.out);
  g.maximum = own.kind == PoolKind::max;
  g.count_padding = own.count_padding;
  return g;
}

void pool_row(const Geometry& g, const float* x, float* y, int64_t row, int64_t n) {
  const ScalarOp op = g.maximum ? ScalarOp::max : ScalarOp::add;
  for (int64_t column = 0; column < g.result[1]; ++column) {
    float* to = y + (row * g.result[1] + column) * n;
    std::fill_n(to, n, g.maximum ? -INFINITY : 0.0f);
    g.taps(0, row, [&](int64_t iy) {
      g.taps(1, column, [&](int64_t ix) {
        const float* from = x + (iy * g.size[1] + ix) * n;
        if (n >= 8) {
          kernels::apply(op, to, from, nullptr, to, n);
        } else {
          for (int64_t b = 0; b < n; ++b)
            to[b] = g.maximum ? (to[b] >= from[b] || std::isnan(to[b]) ? to[b] : from[b])
                              : to[b] + from[b];
        }
      });
    });
    if (g.maximum) continue;
    const auto share = static_cast<float>(1 / (g.divisor(0, row) * g.divisor(1, column)));
    for (int64_t b = 0; b < n; ++b) to[b] *= share;
  }
}

void pool_row_gradient(const Geometry& g, const float* x, const float* y, const float* up,
                       float* dx, float* taken, int64_t row, int64_t n) {
  for (int64_t column = 0; column < g.result[1]; ++column) {
    const int64_t at = (row * g.result[1] + column) * n;
    const auto share =
        g.maximum ? 1.0f : static_cast<float>(1 / (g.divisor(0, row) * g.divisor(1, column)));
    if (g.maximum) std::fill_n(taken, n, 0.0f);
    g.taps(0, row, [&](int64_t iy) {
      g.taps(1, column, [&](int64_t ix) {
        const int64_t from = (iy * g.size[1] + ix) * n;
        if (!g.maximum) {
          for (int64_t b = 0; b < n; ++b) dx[from + b] += up[at + b] * share;
          return;
        }
        // Without branches, so that compilers make vectors of it.
        for (int64_t b = 0; b < n; ++b) {
          const float value = x[from + b], most = y[at + b];
          const bool equal = (value == most) | ((value != value) & (most != most));
          const float takes = equal ? 1.0f - taken[b] : 0.0f;
          dx[from + b] += takes != 0 ? up[at + b] : 0.0f;
          taken[b] += takes;
        }
      });
    });
  }
}

Step forward(Plan& plan, Primitive& p) {
  const Geometry g = geometry_of(plan, p);
  Step step{g.maximum ? "max_pool" : "mean_pool", "", p.in, {p.out}};
  step.detail = fmt::format("{}x{}", g.kernel[0], g.kernel[1]);
  step.bind = [g, in = p.in[0], out = p.out](const Memory& memory) -> Kernel {
    return [g, from = memory[in], to = memory[out]](const Run& run) {
      for (int64_t c = 0; c < g.channels; ++c)
        for (int64_t row = 0; row < g.result[0]; ++row)
          pool_row(g, from + c * g.x_stride, to + c * g.y_stride, row, run.n);
    };
  };
  return step;
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const Target t = backward.target(p.in[0]);
  if (t.tensor < 0) return;
  const Geometry g = geometry_of(plan, p);
  Step step{g.maximum ? "max_pool_gradient" : "mean_pool_gradient", "", {gradient}, {t.tensor}};
  if (g.maximum) step.read({p.in[0], p.out});
  const int taken = plan.scratch("taken", plan.options.batch_size);
  step.write({taken});
  step.bind = [=, in = p.in[0], out = p.out](const Memory& memory) -> Kernel {
    return [=, x = memory[in], y = memory[out], up = memory[gradient], dx = memory[t.tensor],
            used = memory[taken]](const Run& run) {
      const int64_t lanes = g.size[0] * g.size[1] * run.n;
      for (int64_t c = 0; c < g.channels; ++c) {
        float* to = dx + c * g.x_stride;
        if (!t.accumulate) std::fill_n(to, lanes, 0.0f);
        for (int64_t row = 0; row < g.result[0]; ++row)
          pool_row_gradient(g, x + c * g.x_stride, y + c * g.y_stride, up + c * g.y_stride, to,
                            used, row, run.n);
      }
    };
  };
  backward.push(std::move(step));
}

const Register<PrimitiveRecord> registered{{
    .name = "pool",
    .summary = "the maximum or mean of each window",
    .forward = forward,
    .gradient = gradient,
}};

}  // namespace
}  // namespace mase::engine::pool_primitive
