// SPDX-License-Identifier: Apache-2.0
// lane_sums: what a bias gets from the gradient of the result, the sum over all but one dimension.
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::lane_sums_primitive {
namespace {

Step vectors(Plan& plan, Primitive& p) {
  const int x = p.in[0];
  const int64_t count = element_count(plan.at(p.out).shape), stride = plan.row_stride(x);
  const int64_t groups = count > 0 ? plan.at(x).rows() / count : 0;
  return make_step(
      "lane_sums", "", {x}, {p.out},
      [=, &plan, accumulate = p.accumulate](const Run& run, const float* from, float* to) {
        const int64_t lanes = plan.lanes(x, run);
        for (int64_t i = 0; i < groups; ++i)
          for (int64_t o = 0; o < count; ++o) {
            const auto sum =
                static_cast<float>(kernels::sum(from + (i * count + o) * stride, lanes));
            to[o] = accumulate || i > 0 ? to[o] + sum : sum;
          }
      });
}

void reference(Reference& call) {
  const size_t dim = call.primitive.as<LaneSumsPayload>().dim;
  each_index(call.in[0].shape, [&](const Shape& at) {
    call.out.data[static_cast<size_t>(at[dim])] += value_at(call.in[0], at);
  });
}

Slot generate(Trial& trial) {
  trial.batch(64);
  const Shape sample = {trial.size(1, 9, 64), trial.size(1, 20, 64)};
  const bool channels = trial.coin(true);
  const Slot x =
      trial.to().relayout(trial.activation(sample), channels ? Axes::channels(3) : Axes::flat(3));
  const size_t dim = channels ? 1 : 2;
  return trial.to().add("lane_sums", {.in = {x}, .payload = LaneSumsPayload{dim}},
                        {sample[dim - 1]}, Layout::fixed);
}

const Register<PrimitiveRecord> registered{{
    .name = "lane_sums",
    .summary = "the gradient of a bias: sums over all but one dimension",
    .payload = typeid(LaneSumsPayload),
    .variants = {{"vectors", vectors}},
    .reference = reference,
    .accumulates = true,
    .generate = generate,
}};

}  // namespace
}  // namespace mase::engine::lane_sums_primitive
