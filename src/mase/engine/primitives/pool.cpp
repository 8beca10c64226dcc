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
#include "mase/ops/windows.h"

namespace mase::engine::pool_primitive {
namespace {

struct Geometry : PlaneWindows {
  using PlaneWindows::PlaneWindows;
  int64_t after[2];
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

// Between an operand and its result.
Geometry geometry_of(const Plan& plan, const PoolPayload& own, int operand, int pooled) {
  const Shape &x = plan.at(operand).shape, &y = plan.at(pooled).shape;
  Geometry g(own.windows, x, y);
  const size_t missing = 2 - own.windows.kernel.size();
  for (size_t i = 0; i < 2; ++i)
    g.after[i] = i < missing ? 0 : own.windows.padding_after[i - missing];
  g.channels = x[1];
  g.x_stride = plan.row_stride(operand);
  g.y_stride = plan.row_stride(pooled);
  // Below this many floats a second thread costs more than it brings.
  constexpr size_t parallel_floats = size_t{1} << 17;
  g.threads = plan.floats(operand) >= parallel_floats ? plan.options.threads : 1;
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
  const Geometry g = geometry_of(plan, p.as<PoolPayload>(), p.in[0], p.out);
  return make_step(g.maximum ? "max_pool" : "mean_pool",
                   fmt::format("{}x{}", g.kernel[0], g.kernel[1]), {p.in[0]}, {p.out},
                   [g, windows = windows_of(g)](const Run& run, const float* from, float* to) {
                     kernels::for_each_piece(g.channels, g.threads, [&](int64_t c) {
                       const float* x = from + c * g.x_stride;
                       float* y = to + c * g.y_stride;
                       if (g.maximum)
                         kernels::max_pool(windows.of(run.n), x, y);
                       else
                         for (int64_t row = 0; row < g.result[0]; ++row)
                           mean_row(g, x, y + row * g.result[1] * run.n, row, run.n);
                     });
                   });
}

// In are the gradient of the result, the operand and the result, which only the gradient of a
// maximum reads; out is the gradient of the operand.
Step gradient(Plan& plan, Primitive& p) {
  const Geometry g = geometry_of(plan, p.as<PoolPayload>(), p.out, p.in[0]);
  return make_step(g.maximum ? "max_pool_gradient" : "mean_pool_gradient", "",
                   {p.in[0], g.maximum ? p.in[1] : -1, g.maximum ? p.in[2] : -1}, {p.out},
                   [g, windows = windows_of(g), accumulate = p.accumulate](
                       const Run& run, const float* up, const float* x, const float* y, float* dx) {
                     kernels::for_each_piece(g.channels, g.threads, [&](int64_t c) {
                       float* to = dx + c * g.x_stride;
                       const float* ups = up + c * g.y_stride;
                       if (!accumulate) std::fill_n(to, g.size[0] * g.size[1] * run.n, 0.0f);
                       if (g.maximum)
                         kernels::max_pool_gradient(windows.of(run.n), x + c * g.x_stride,
                                                    y + c * g.y_stride, ups, to);
                       else
                         for (int64_t row = 0; row < g.result[0]; ++row)
                           mean_row_gradient(g, ups + row * g.result[1] * run.n, to, row, run.n);
                     });
                   });
}

// Calls window(place of a result, what its mean divides by), tap(place in x) for all in the window,
// then done(place of the result).
template <class Window, class Tap, class Done>
void each_window(const Geometry& g, const Shape& x, const Window& window, const Tap& tap,
                 const Done& done) {
  for (int64_t plane = 0; plane < x[0] * x[1]; ++plane)
    for (int64_t row = 0; row < g.result[0]; ++row)
      for (int64_t column = 0; column < g.result[1]; ++column) {
        const auto at = static_cast<size_t>((plane * g.result[0] + row) * g.result[1] + column);
        window(at, g.divisor(0, row) * g.divisor(1, column));
        g.taps(0, row, [&](int64_t i) {
          g.taps(1, column, [&](int64_t j) {
            tap(static_cast<size_t>((plane * g.size[0] + i) * g.size[1] + j));
          });
        });
        done(at);
      }
}

void reference(Reference& call) {
  const Primitive& p = call.primitive;
  const Geometry g = geometry_of(call.plan, p.as<PoolPayload>(), p.in[0], p.out);
  double most = 0, sum = 0, divisor = 1;
  each_window(
      g, call.in[0].shape,
      [&](size_t, double count) { most = -INFINITY, sum = 0, divisor = count; },
      [&](size_t from) {
        most = std::max(most, call.in[0].data[from]);
        sum += call.in[0].data[from];
      },
      [&](size_t at) { call.out.data[at] = g.maximum ? most : sum / divisor; });
}

void gradient_reference(Reference& call) {
  const Primitive& p = call.primitive;
  const Geometry g = geometry_of(call.plan, p.as<PoolPayload>(), p.out, p.in[0]);
  double up = 0, largest = 0;
  bool open = true;
  each_window(
      g, call.out.shape,
      [&](size_t at, double count) {
        up = call.in[0].data[at] / (g.maximum ? 1 : count);
        if (g.maximum) largest = call.in[2].data[at];
        open = true;
      },
      [&](size_t to) {
        if (!open || (g.maximum && call.in[1].data[to] != largest)) return;
        call.out.data[to] += up;
        open = !g.maximum;  // the first of equal maxima takes it all
      },
      [](size_t) {});
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
    .gradient =
        [](Backward& backward, const Primitive& p, int up) {
          const bool maximum = p.as<PoolPayload>().kind == PoolKind::max;
          backward.send(
              "pool_gradient",
              {.in = maximum ? std::vector<int>{up, p.in[0], p.out} : std::vector<int>{up},
               .payload = p.payload},
              p.in[0]);
        },
    .generate = generate,
    .sample_by_sample = each_sample_alone,
}};
const Register<PrimitiveRecord> gradient_record{{
    .name = "pool_gradient",
    .summary = "what each value gets from the gradients of the windows it is in",
    .payload = typeid(PoolPayload),
    .variants = {{"vectors", gradient}},
    .reference = gradient_reference,
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("pool", true); },
}};

}  // namespace
}  // namespace mase::engine::pool_primitive
