// SPDX-License-Identifier: Apache-2.0
// pool: the maximum or mean of each window of each channel. Padding is never the maximum; the first
// of equal maxima takes the gradient, as in PyTorch.
#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/parallel.h"
#include "mase/engine/kernels/pool.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::pool_primitive {
namespace {

struct Geometry {
  int64_t kernel[2], stride[2], before[2], after[2], dilation[2], size[2], result[2];
  int64_t channels, x_stride, y_stride;
  int threads;
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
  // Below this many floats a second thread costs more than it brings.
  constexpr size_t parallel_floats = size_t{1} << 17;
  g.threads = plan.floats(p.in[0]) >= parallel_floats ? plan.options.threads : 1;
  g.maximum = own.kind == PoolKind::max;
  g.count_padding = own.count_padding;
  return g;
}

kernels::Windowing windows_of(const Geometry& g) {
  const auto axis = [&](int i) -> kernels::WindowAxis {
    return {g.kernel[i], g.stride[i], g.before[i], g.dilation[i], g.size[i], g.result[i]};
  };
  return {axis(0), axis(1)};
}

void mean_row(const Geometry& g, const float* x, float* y, int64_t row, int64_t n) {
  for (int64_t column = 0; column < g.result[1]; ++column) {
    float* to = y + column * n;
    std::fill_n(to, n, 0.0f);
    g.taps(0, row, [&](int64_t iy) {
      g.taps(1, column, [&](int64_t ix) {
        const float* from = x + (iy * g.size[1] + ix) * n;
        if (n >= 8)
          kernels::apply(ScalarOp::add, to, from, nullptr, to, n);
        else
          for (int64_t b = 0; b < n; ++b) to[b] += from[b];
      });
    });
    const auto share = static_cast<float>(1 / (g.divisor(0, row) * g.divisor(1, column)));
    for (int64_t b = 0; b < n; ++b) to[b] *= share;
  }
}

void mean_row_gradient(const Geometry& g, const float* up, float* dx, int64_t row, int64_t n) {
  for (int64_t column = 0; column < g.result[1]; ++column) {
    const auto share = static_cast<float>(1 / (g.divisor(0, row) * g.divisor(1, column)));
    const float* from = up + column * n;
    g.taps(0, row, [&](int64_t iy) {
      g.taps(1, column, [&](int64_t ix) {
        float* to = dx + (iy * g.size[1] + ix) * n;
        for (int64_t b = 0; b < n; ++b) to[b] += from[b] * share;
      });
    });
  }
}

Step forward(Plan& plan, Primitive& p) {
  const Geometry g = geometry_of(plan, p);
  Step step{g.maximum ? "max_pool" : "mean_pool", "", p.in, {p.out}};
  step.detail = fmt::format("{}x{}", g.kernel[0], g.kernel[1]);
  step.bind = [=, in = p.in[0], out = p.out](const Memory& memory) -> Kernel {
    return [g, from = memory[in], to = memory[out], windows = windows_of(g)](const Run& run) {
      kernels::for_each_piece(g.channels, g.threads, [&](int64_t c) {
        const float* x = from + c * g.x_stride;
        float* y = to + c * g.y_stride;
        if (g.maximum)
          kernels::max_pool(windows.of(run.n), x, y);
        else
          for (int64_t row = 0; row < g.result[0]; ++row)
            mean_row(g, x, y + row * g.result[1] * run.n, row, run.n);
      });
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
  step.bind = [=, in = p.in[0], out = p.out](const Memory& memory) -> Kernel {
    return [=, x = memory[in], y = memory[out], up = memory[gradient], dx = memory[t.tensor],
            windows = windows_of(g)](const Run& run) {
      kernels::for_each_piece(g.channels, g.threads, [&](int64_t c) {
        float* to = dx + c * g.x_stride;
        const float* ups = up + c * g.y_stride;
        if (!t.accumulate) std::fill_n(to, g.size[0] * g.size[1] * run.n, 0.0f);
        if (g.maximum)
          kernels::max_pool_gradient(windows.of(run.n), x + c * g.x_stride, y + c * g.y_stride, ups,
                                     to);
        else
          for (int64_t row = 0; row < g.result[0]; ++row)
            mean_row_gradient(g, ups + row * g.result[1] * run.n, to, row, run.n);
      });
    };
  };
  backward.push(std::move(step));
}

void reference(Reference& call) {
  const Geometry g = geometry_of(call.plan, call.primitive);
  const int64_t planes = call.in[0].shape[0] * call.in[0].shape[1];
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t row = 0; row < g.result[0]; ++row)
      for (int64_t column = 0; column < g.result[1]; ++column) {
        double most = -INFINITY, sum = 0;
        g.taps(0, row, [&](int64_t y) {
          g.taps(1, column, [&](int64_t x) {
            const double value =
                call.in[0].data[static_cast<size_t>((plane * g.size[0] + y) * g.size[1] + x)];
            most = std::max(most, value);
            sum += value;
          });
        });
        call.out.data[static_cast<size_t>((plane * g.result[0] + row) * g.result[1] + column)] =
            g.maximum ? most : sum / (g.divisor(0, row) * g.divisor(1, column));
      }
}

Slot generate(Trial& trial) {
  trial.batch(32);
  const size_t dims = trial.coin(true) ? 2 : 1;
  const PoolKind kind = trial.coin(true) ? PoolKind::max : PoolKind::mean;
  Windows windows;
  Shape sample = {trial.size(1, 5, 64)}, positions;
  for (size_t i = 0; i < dims; ++i) {
    const int64_t kernel = trial.size(1, 4, 2), padding = trial.below(kernel / 2 + 1);
    const int64_t dilation = kind == PoolKind::max ? trial.size(1, 2, 1) : 1;
    const int64_t reach = dilation * (kernel - 1) + 1, stride = trial.size(1, 3, 2);
    sample.push_back(trial.size(reach, reach + 9, 32));
    windows.kernel.push_back(kernel);
    windows.stride.push_back(stride);
    windows.padding_before.push_back(padding);
    windows.padding_after.push_back(padding);
    windows.dilation.push_back(dilation);
    positions.push_back((sample.back() + 2 * padding - reach) / stride + 1);
  }
  return trial.to().pool(kind, trial.activation(sample), windows, trial.coin(), positions);
}

const Register<PrimitiveRecord> registered{{
    .name = "pool",
    .summary = "the maximum or mean of each window",
    .payload = typeid(PoolPayload),
    .variants = {{"vectors", forward}},
    .reference = reference,
    .gradient = gradient,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
}};

}  // namespace
}  // namespace mase::engine::pool_primitive
