// SPDX-License-Identifier: Apache-2.0
// Primitives that normalise each lane over some of its rows: softmax and layer_norm.
#include <memory>
#include <numeric>

#include "mase/engine/kernels/sample_norm.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"

namespace mase::engine::sample_norm_primitives {
namespace {

int64_t product(const Shape& shape, size_t from, size_t to) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from),
                         shape.begin() + static_cast<std::ptrdiff_t>(to), int64_t{1},
                         std::multiplies<>());
}

struct Axis {
  int64_t outer, length, inner;
};

Axis axis_of(const Plan& plan, const Primitive& p) {
  const Shape rows = plan.at(p.out).row_shape();
  const auto place = static_cast<size_t>(p.as<SoftmaxPayload>().place);
  return {product(rows, 0, place), rows[place], product(rows, place + 1, rows.size())};
}

Step softmax(Plan& plan, Primitive& p) {
  const bool logarithm = p.as<SoftmaxPayload>().logarithm;
  Step step{logarithm ? "log_softmax" : "softmax", "", p.in, {p.out}};
  const Axis a = axis_of(plan, p);
  const int in = p.in[0], out = p.out;
  const int64_t stride = plan.row_stride(out);
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, &plan, from = memory[in], to = memory[out]](const Run& run) {
      const kernels::SampleRange range{a.length, a.inner * stride, plan.lanes(out, run)};
      for (int64_t outer = 0; outer < a.outer; ++outer)
        for (int64_t inner = 0; inner < a.inner; ++inner) {
          const int64_t at = (outer * a.length * a.inner + inner) * stride;
          kernels::softmax(range, from + at, to + at, logarithm);
        }
    };
  };
  return step;
}

void softmax_gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const Target t = backward.target(p.in[0]);
  if (t.tensor < 0) return;
  Step step{"softmax_gradient", "", {p.out, gradient}, {t.tensor}};
  const Axis a = axis_of(plan, p);
  const int64_t stride = plan.row_stride(p.out);
  const bool logarithm = p.as<SoftmaxPayload>().logarithm;
  const int out = p.out;
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return
        [=, &plan, y = memory[out], g = memory[gradient], to = memory[t.tensor]](const Run& run) {
          const kernels::SampleRange range{a.length, a.inner * stride, plan.lanes(out, run)};
          for (int64_t outer = 0; outer < a.outer; ++outer)
            for (int64_t inner = 0; inner < a.inner; ++inner) {
              const int64_t at = (outer * a.length * a.inner + inner) * stride;
              kernels::softmax_gradient(range, y + at, g + at, to + at, logarithm, t.accumulate);
            }
        };
  };
  backward.push(std::move(step));
}

struct Layers {
  int64_t outer, inner;
};

Layers layers_of(const Plan& plan, const Primitive& p) {
  const Shape rows = plan.at(p.out).row_shape();
  const size_t split = rows.size() - static_cast<size_t>(p.as<LayerNormPayload>().dims);
  return {product(rows, 0, split), product(rows, split, rows.size())};
}

Step layer_norm(Plan& plan, Primitive& p) {
  Step step{"layer_norm", "", p.in, {p.out}};
  step.read({p.weight, p.bias});
  const Layers g = layers_of(plan, p);
  const int in = p.in[0], out = p.out, weight = p.weight, bias = p.bias;
  const int64_t stride = plan.row_stride(out);
  const double eps = p.as<LayerNormPayload>().eps;
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, &plan, from = memory[in], to = memory[out], w = memory.at(weight),
            c = memory.at(bias)](const Run& run) {
      const kernels::SampleRange range{g.inner, stride, plan.lanes(out, run)};
      for (int64_t outer = 0; outer < g.outer; ++outer) {
        const int64_t at = outer * g.inner * stride;
        kernels::layer_norm(range, from + at, w, c, eps, to + at);
      }
    };
  };
  return step;
}

void layer_norm_gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const Target x = backward.target(p.in[0]), weight = backward.target(p.weight),
               bias = backward.target(p.bias);
  Step step{"layer_norm_gradient", "", {p.in[0], gradient}, {}};
  step.read({p.weight});
  step.write({x.tensor, weight.tensor, bias.tensor});
  const Layers g = layers_of(plan, p);
  const int64_t stride = plan.row_stride(p.out);
  const double eps = p.as<LayerNormPayload>().eps;
  const int out = p.out, from = p.in[0], own_weight = p.weight;
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    auto sums = std::make_shared<std::vector<double>>(static_cast<size_t>(2 * g.inner));
    return [=, &plan, in = memory[from], up = memory[gradient], w = memory.at(own_weight),
            dx = memory.at(x.tensor), dw = memory.at(weight.tensor),
            db = memory.at(bias.tensor)](const Run& run) {
      std::fill(sums->begin(), sums->end(), 0.0);
      const kernels::LayerNormSums each{sums->data(), sums->data() + g.inner};
      const kernels::SampleRange range{g.inner, stride, plan.lanes(out, run)};
      for (int64_t outer = 0; outer < g.outer; ++outer) {
        const int64_t begin = outer * g.inner * stride;
        kernels::layer_norm_gradient(range, in + begin, up + begin, w, eps,
                                     dx ? dx + begin : nullptr, x.accumulate, each);
      }
      for (int64_t i = 0; i < g.inner; ++i) {
        if (dw)
          dw[i] = static_cast<float>(weight.accumulate ? dw[i] + each.weight[i] : each.weight[i]);
        if (db) db[i] = static_cast<float>(bias.accumulate ? db[i] + each.bias[i] : each.bias[i]);
      }
    };
  };
  backward.push(std::move(step));
}

const Register<PrimitiveRecord> softmax_record{{
    .name = "softmax",
    .summary = "softmax or its logarithm over one row axis",
    .forward = softmax,
    .gradient = softmax_gradient,
}};
const Register<PrimitiveRecord> layer_norm_record{{
    .name = "layer_norm",
    .summary = "each lane normalised over its last row axes",
    .forward = layer_norm,
    .gradient = layer_norm_gradient,
}};

}  // namespace
}  // namespace mase::engine::sample_norm_primitives
