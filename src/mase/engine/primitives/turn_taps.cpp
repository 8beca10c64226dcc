// SPDX-License-Identifier: Apache-2.0
// turn_taps: the weights of a convolution [out][in][taps] as those that lead back, [in][out] with
// the taps in reverse, group by group.
#include "mase/engine/payloads.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::turn_taps_primitive {
namespace {

Step copy(Plan& plan, Primitive& p) {
  const int from = p.in[0];
  const Shape& w = plan.at(from).shape;
  const int64_t groups = p.as<TurnTapsPayload>().groups, out = w[0] / groups, in = w[1];
  const int64_t taps = element_count(w) / std::max<int64_t>(1, w[0] * w[1]);
  return make_step("turn_taps", "", {from}, {p.out},
                   [=](const Run&, const float* weights, float* turned) {
                     for (int64_t group = 0; group < groups; ++group)
                       for (int64_t o = 0; o < out; ++o)
                         for (int64_t c = 0; c < in; ++c)
                           for (int64_t t = 0; t < taps; ++t)
                             turned[((group * in + c) * out + o) * taps + taps - 1 - t] =
                                 weights[((group * out + o) * in + c) * taps + t];
                   });
}

void reference(Reference& call) {
  const Array& w = call.in[0];
  const int64_t groups = call.primitive.as<TurnTapsPayload>().groups;
  const int64_t out = w.shape[0] / groups, in = w.shape[1];
  each_index(call.out.shape, [&](const Shape& at) {
    Shape from = at;
    from[0] = at[0] / in * out + at[1];
    from[1] = at[0] % in;
    for (size_t i = 2; i < at.size(); ++i) from[i] = w.shape[i] - 1 - at[i];
    value_at(call.out, at) = value_at(w, from);
  });
}

Slot generate(Trial& trial) {
  const int64_t groups = trial.size(1, 3, 1), out = trial.size(1, 9, 64), in = trial.size(1, 9, 64);
  const int64_t height = trial.size(1, 4, 3), width = trial.size(1, 4, 3);
  const Slot w = trial.parameter({groups * out, in, height, width});
  return trial.to().add("turn_taps", {.in = {w}, .payload = TurnTapsPayload{groups}},
                        {groups * in, out, height, width}, Layout::fixed);
}

const Register<PrimitiveRecord> registered{{
    .name = "turn_taps",
    .summary = "the weights of a convolution as those that lead back to its image",
    .payload = typeid(TurnTapsPayload),
    .variants = {{"copy", copy, true}},
    .reference = reference,
    .generate = generate,
    .moves_values = true,
}};

}  // namespace
}  // namespace mase::engine::turn_taps_primitive
