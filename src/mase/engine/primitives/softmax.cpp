// SPDX-License-Identifier: Apache-2.0
// Primitives that normalise each lane over some of its rows: softmax and layer_norm.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "mase/engine/kernels/sample_norm.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

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

void softmax_reference(Reference& call) {
  const auto& own = call.primitive.as<SoftmaxPayload>();
  const size_t dim = dimension_of(call.plan.at(call.primitive.out), own.place);
  const Array& x = call.in[0];
  each_index(x.shape, [&](const Shape& index) {
    Shape other = index;
    double largest = -INFINITY, total = 0;
    for (other[dim] = 0; other[dim] < x.shape[dim]; ++other[dim])
      largest = std::max(largest, value_at(x, other));
    for (other[dim] = 0; other[dim] < x.shape[dim]; ++other[dim])
      total += std::exp(value_at(x, other) - largest);
    const double shifted = value_at(x, index) - largest;
    value_at(call.out, index) =
        own.logarithm ? shifted - std::log(total) : std::exp(shifted) / total;
  });
}

void layer_norm_reference(Reference& call) {
  const auto& own = call.primitive.as<LayerNormPayload>();
  const Shape& shape = call.out.shape;
  const int64_t inner = product(shape, shape.size() - static_cast<size_t>(own.dims), shape.size());
  const auto count = static_cast<size_t>(inner);
  for (size_t first = 0; first < call.out.data.size(); first += count) {
    const double* x = call.in[0].data.data() + first;
    double mean = 0, variance = 0;
    for (size_t i = 0; i < count; ++i) mean += x[i] / static_cast<double>(inner);
    for (size_t i = 0; i < count; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(inner);
    for (size_t i = 0; i < count; ++i) {
      const double normal = (x[i] - mean) / std::sqrt(variance + own.eps);
      call.out.data[first + i] = normal * (call.primitive.weight >= 0 ? call.weight.data[i] : 1) +
                                 (call.primitive.bias >= 0 ? call.bias.data[i] : 0);
    }
  }
}

Slot generate_softmax(Trial& trial) {
  trial.batch(8);
  const Slot x =
      trial.activation({trial.size(1, 5, 12), trial.size(1, 9, 128), trial.size(1, 40, 128)});
  return trial.to().softmax(x, trial.size(1, 3, 3), trial.coin());
}

Slot generate_layer_norm(Trial& trial) {
  trial.batch(8);
  const Shape sample = {trial.size(1, 5, 128), trial.size(1, 5, 1), trial.size(2, 40, 384)};
  const int64_t dims = trial.size(1, 3, 1);
  const Slot x = trial.activation(sample);
  const Shape last(sample.end() - dims, sample.end());
  std::optional<Slot> weight, bias;
  if (trial.coin(true)) weight = trial.parameter(last);
  if (trial.coin(true)) bias = trial.parameter(last);
  return trial.to().layer_norm(x, dims, weight, bias, 1e-3);
}

const Register<PrimitiveRecord> softmax_record{{
    .name = "softmax",
    .summary = "softmax or its logarithm over one row axis",
    .payload = typeid(SoftmaxPayload),
    .variants = {{"vectors", softmax}},
    .reference = softmax_reference,
    .gradient = softmax_gradient,
    .generate = generate_softmax,
    .sample_by_sample = each_sample_alone,
}};
const Register<PrimitiveRecord> layer_norm_record{{
    .name = "layer_norm",
    .summary = "each lane normalised over its last row axes",
    .payload = typeid(LayerNormPayload),
    .variants = {{"vectors", layer_norm}},
    .reference = layer_norm_reference,
    .gradient = layer_norm_gradient,
    .generate = generate_layer_norm,
    .sample_by_sample = each_sample_alone,
}};

}  // namespace
}  // namespace mase::engine::sample_norm_primitives
