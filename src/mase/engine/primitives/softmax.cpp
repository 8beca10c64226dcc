// SPDX-License-Identifier: Apache-2.0
// Primitives that normalise each lane over some of its rows: softmax and layer_norm.
#include <algorithm>
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

// Calls line(first float) for each line of rows along the axis.
template <class Line>
void each_line(const Axis& a, int64_t stride, const Line& line) {
  for (int64_t outer = 0; outer < a.outer; ++outer)
    for (int64_t inner = 0; inner < a.inner; ++inner)
      line((outer * a.length * a.inner + inner) * stride);
}

Step softmax(Plan& plan, Primitive& p) {
  const Axis a = axis_of(plan, p);
  const bool logarithm = p.as<SoftmaxPayload>().logarithm;
  return make_step(
      logarithm ? "log_softmax" : "softmax", "", {p.in[0]}, {p.out},
      [=, &plan, out = p.out, stride = plan.row_stride(p.out)](const Run& run, const float* from,
                                                               float* to) {
        const kernels::SampleRange range{a.length, a.inner * stride, plan.lanes(out, run)};
        each_line(a, stride,
                  [&](int64_t at) { kernels::softmax(range, from + at, to + at, logarithm); });
      });
}

// In: the result and the gradient of it.
Step softmax_gradient(Plan& plan, Primitive& p) {
  const Axis a = axis_of(plan, p);
  const bool logarithm = p.as<SoftmaxPayload>().logarithm;
  return make_step(
      "softmax_gradient", "", {p.in[0], p.in[1]}, {p.out},
      [=, &plan, out = p.out, stride = plan.row_stride(p.out), accumulate = p.accumulate](
          const Run& run, const float* y, const float* g, float* to) {
        const kernels::SampleRange range{a.length, a.inner * stride, plan.lanes(out, run)};
        each_line(a, stride, [&](int64_t at) {
          kernels::softmax_gradient(range, y + at, g + at, to + at, logarithm, accumulate);
        });
      });
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
  const Layers g = layers_of(plan, p);
  return make_step(
      "layer_norm", "", {p.in[0], p.weight, p.bias}, {p.out},
      [=, &plan, out = p.out, stride = plan.row_stride(p.out), eps = p.as<LayerNormPayload>().eps](
          const Run& run, const float* from, const float* w, const float* c, float* to) {
        const kernels::SampleRange range{g.inner, stride, plan.lanes(out, run)};
        for (int64_t outer = 0; outer < g.outer; ++outer) {
          const int64_t at = outer * g.inner * stride;
          kernels::layer_norm(range, from + at, w, c, eps, to + at);
        }
      });
}

void layer_norm_gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const Target x = backward.target(p.in[0]), weight = backward.target(p.weight),
               bias = backward.target(p.bias);
  const Layers g = layers_of(plan, p);
  backward.push(make_step(
      "layer_norm_gradient", "", {p.in[0], gradient, p.weight},
      {x.tensor, weight.tensor, bias.tensor},
      [=, &plan, stride = plan.row_stride(p.out), eps = p.as<LayerNormPayload>().eps, out = p.out,
       sums = std::vector<double>(static_cast<size_t>(2 * g.inner))](
          const Run& run, const float* in, const float* up, const float* w, float* dx, float* dw,
          float* db) mutable {
        std::fill(sums.begin(), sums.end(), 0.0);
        const kernels::LayerNormSums each{sums.data(), sums.data() + g.inner};
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
      }));
}

const char* softmax_op(const Primitive& p) {
  return p.as<SoftmaxPayload>().logarithm ? "log_softmax" : "softmax";
}

Value softmax_attributes(const Reference& call) {
  const Primitive& p = call.primitive;
  const size_t dim = dimension_of(call.plan.at(p.out), p.as<SoftmaxPayload>().place);
  return Dict{{"dim", static_cast<int64_t>(dim)}};
}

void softmax_reference(Reference& call) {
  run_op(call, softmax_op(call.primitive), softmax_attributes(call));
}

void softmax_gradient_reference(Reference& call) {
  run_op_gradient(call, softmax_op(call.primitive), softmax_attributes(call), {&call.in[0]},
                  call.in[0], call.in[1]);
}

void layer_norm_reference(Reference& call) {
  const auto& own = call.primitive.as<LayerNormPayload>();
  const Shape& shape = call.out.shape;
  List last;
  for (size_t i = shape.size() - static_cast<size_t>(own.dims); i < shape.size(); ++i)
    last.push_back(shape[i]);
  run_op(call, "layer_norm", Dict{{"normalized_shape", last}, {"eps", own.eps}});
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
    .gradient =
        [](Backward& backward, const Primitive& p, int gradient) {
          backward.send("softmax_gradient", {.in = {p.out, gradient}, .payload = p.payload},
                        p.in[0]);
        },
    .generate = generate_softmax,
    .sample_by_sample = each_sample_alone,
}};
const Register<PrimitiveRecord> softmax_gradient_record{{
    .name = "softmax_gradient",
    .summary = "the gradient of softmax or its logarithm, from its result",
    .payload = typeid(SoftmaxPayload),
    .variants = {{"vectors", softmax_gradient}},
    .reference = softmax_gradient_reference,
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("softmax"); },
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
    .any_stride = true,
}};

}  // namespace
}  // namespace mase::engine::sample_norm_primitives
