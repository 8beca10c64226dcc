// SPDX-License-Identifier: Apache-2.0
// linear_weights: what the weights of a linear layer get from its input and the gradient of its
// result, g x^T over all lanes.
#include <algorithm>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::linear_weights_primitive {
namespace {

Step vectors(Plan& plan, Primitive& p) {
  const int x = p.in[0], g = p.in[1], out = p.out;
  const bool transposed = p.as<LinearWeightsPayload>().transposed;
  const Shape& w = plan.at(out).shape;
  kernels::LinearShape geometry{};
  geometry.out = w[transposed ? 1 : 0];
  geometry.in = w[transposed ? 0 : 1];
  geometry.out_step = transposed ? 1 : w[1];
  geometry.in_step = transposed ? w[1] : 1;
  geometry.stride = plan.row_stride(g);
  geometry.threads = plan.options.threads;
  const int64_t groups = geometry.out > 0 ? plan.at(g).rows() / geometry.out : 0;
  return make_step("linear_weights", fmt::format("{} -> {}", geometry.in, geometry.out), {x, g},
                   {out},
                   [=, &plan, accumulate = p.accumulate](const Run& run, const float* from,
                                                         const float* ups, float* to) {
                     // The lanes in pieces whose rows stay in cache while all products are formed.
                     constexpr int64_t piece = 1024;
                     kernels::LinearShape shape = geometry;
                     const int64_t lanes = plan.lanes(x, run);
                     for (int64_t i = 0; i < groups; ++i)
                       for (int64_t first = 0; first == 0 || first < lanes; first += piece) {
                         shape.n = std::min(piece, lanes - first);
                         kernels::linear_gradient(shape, ups + i * shape.out * shape.stride + first,
                                                  from + i * shape.in * shape.stride + first, to,
                                                  nullptr, accumulate || i > 0 || first > 0);
                       }
                   });
}

void reference(Reference& call) {
  const bool transposed = call.primitive.as<LinearWeightsPayload>().transposed;
  const Array &x = call.in[0], &g = call.in[1];
  each_index(g.shape, [&](const Shape& at) {
    Shape from = at;
    for (from.back() = 0; from.back() < x.shape.back(); ++from.back())
      value_at(call.out,
               transposed ? Shape{from.back(), at.back()} : Shape{at.back(), from.back()}) +=
          value_at(g, at) * value_at(x, from);
  });
}

Slot generate(Trial& trial) {
  trial.batch(256);
  const int64_t in = trial.size(1, 40, 256), out = trial.size(1, 40, 256);
  const bool transposed = trial.coin();
  const Slot x = trial.activation(
      trial.coin(true) ? Shape{in} : Shape{trial.size(1, 5, 1), trial.size(1, 9, 1), in});
  const Slot w = trial.parameter(transposed ? Shape{in, out} : Shape{out, in});
  const Slot y = transposed ? trial.to().matmul(x, w) : trial.to().linear(x, w, {});
  const Primitive layer = trial.plan().primitives.back();
  return trial.to().add(
      "linear_weights",
      {.in = {layer.in[0], trial.beside(y)}, .payload = LinearWeightsPayload{transposed}},
      trial.to().shape(w), Layout::fixed);
}

const Register<PrimitiveRecord> registered{{
    .name = "linear_weights",
    .summary = "the gradient of a linear layer's weights",
    .payload = typeid(LinearWeightsPayload),
    .variants = {{"vectors", vectors}},
    .reference = reference,
    .accumulates = true,
    .generate = generate,
    .multiply_adds =
        [](const Plan& plan, const Primitive& p) {
          return static_cast<double>(element_count(plan.at(p.in[1]).shape) *
                                     plan.at(p.in[0]).shape.back());
        },
}};

}  // namespace
}  // namespace mase::engine::linear_weights_primitive
