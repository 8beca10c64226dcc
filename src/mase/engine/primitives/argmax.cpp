// SPDX-License-Identifier: Apache-2.0
// argmax: along one dimension, which is a row axis, where each lane's largest value is; the first
// of equal ones, or the first NaN. A place has no gradient.
#include <algorithm>
#include <cmath>

#include "mase/engine/lowerer.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::argmax_primitive {
namespace {

struct ArgmaxPayload {
  int place = 0;  // of the axis among the rows of the operand
};

Slot lower(Lowerer& to, const Value& attributes, const std::vector<Slot>& operands) {
  Slot x = operands[0];
  const int64_t dim = attributes["dim"].as_int();
  if (!to.is_batch(x) || dim == 0) return -1;
  if (to.info(x).row_place(dim) < 0) x = to.flat(x);
  Shape shape = to.shape(x);
  shape[static_cast<size_t>(dim)] = 1;
  return to.add("argmax", {.in = {x}, .payload = ArgmaxPayload{to.info(x).row_place(dim)}}, shape,
                Layout::batch, to.info(x).axes);
}

Step forward(Plan& plan, Primitive& p) {
  const Shape rows = plan.at(p.in[0]).row_shape();
  const auto place = static_cast<size_t>(p.as<ArgmaxPayload>().place);
  int64_t outer = 1, inner = 1;
  const int64_t size = rows[place], stride = plan.row_stride(p.in[0]);
  for (size_t i = 0; i < rows.size(); ++i)
    if (i != place) (i < place ? outer : inner) *= rows[i];
  return make_step(
      "argmax", "", {p.in[0]}, {p.out, plan.scratch("most", stride)},
      [=, &plan, x = p.in[0]](const Run& run, const float* from, float* to, float* best) {
        const int64_t lanes = plan.lanes(x, run);
        for (int64_t o = 0; o < outer; ++o)
          for (int64_t i = 0; i < inner; ++i) {
            const float* first = from + (o * size * inner + i) * stride;
            float* places = to + (o * inner + i) * stride;
            std::copy_n(first, lanes, best);
            std::fill_n(places, lanes, 0.0f);
            for (int64_t k = 1; k < size; ++k) {
              const float* row = first + k * inner * stride;
              for (int64_t l = 0; l < lanes; ++l) {  // without a branch
                const bool better =
                    ((row[l] > best[l]) | (row[l] != row[l])) & (best[l] == best[l]);
                best[l] = better ? row[l] : best[l];
                places[l] = better ? static_cast<float>(k) : places[l];
              }
            }
          }
      });
}

void reference(Reference& call) {
  const size_t dim =
      dimension_of(call.plan.at(call.primitive.in[0]), call.primitive.as<ArgmaxPayload>().place);
  run_op(call, "argmax", Dict{{"dim", static_cast<int64_t>(dim)}, {"keepdim", true}});
}

Slot generate(Trial& trial) {
  const Shape sample = {trial.size(1, 9, 10), trial.size(1, 9, 16), trial.size(1, 5, 1)};
  // Few different numbers: many are equal.
  return trial.to().primitive("argmax", Dict{{"dim", trial.size(1, 3, 1)}},
                              {trial.activation(sample, {-2, 2, true})});
}

const Register<PrimitiveRecord> registered{{
    .name = "argmax",
    .summary = "where the largest value of an axis is",
    .payload = typeid(ArgmaxPayload),
    .variants = {{"lanes", forward}},
    .reference = reference,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .lower = lower,
}};

}  // namespace
}  // namespace mase::engine::argmax_primitive
