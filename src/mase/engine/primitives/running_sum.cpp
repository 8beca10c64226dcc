// SPDX-License-Identifier: Apache-2.0
// running_sum: along one dimension, which is a row axis, the sum of all rows up to each one. Its
// gradient is the same from the other end.
#include <algorithm>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/lowerer.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::running_sum_primitive {
namespace {

struct RunningSumPayload {
  int place = 0;           // of the axis among the rows
  bool backwards = false;  // from the other end
};

Slot lower(Lowerer& to, const Value& attributes, const std::vector<Slot>& operands) {
  Slot x = operands[0];
  const int64_t dim = attributes["dim"].as_int();
  if (to.is_batch(x) && dim == 0) return -1;
  if (to.is_batch(x) && to.info(x).row_place(dim) < 0) x = to.flat(x);
  const RunningSumPayload payload{to.info(x).row_place(dim)};
  return to.add("running_sum", {.in = {x}, .payload = payload}, to.shape(x), to.info(x).layout,
                to.info(x).axes);
}

struct Geometry {
  int64_t outer = 1, size = 1, inner = 1, stride = 1;
};

Geometry geometry_of(const Plan& plan, const Primitive& p) {
  const Shape rows = plan.at(p.out).row_shape();
  const auto place = static_cast<size_t>(p.as<RunningSumPayload>().place);
  Geometry g;
  for (size_t i = 0; i < rows.size(); ++i)
    (i < place ? g.outer : i == place ? g.size : g.inner) *= rows[i];
  g.stride = plan.row_stride(p.out);
  return g;
}

void add_up(const Geometry& g, const float* from, float* to, int64_t lanes, bool backwards,
            bool accumulate, float* sums) {
  for (int64_t outer = 0; outer < g.outer; ++outer)
    for (int64_t inner = 0; inner < g.inner; ++inner) {
      std::fill_n(sums, lanes, 0.0f);
      for (int64_t k = 0; k < g.size; ++k) {
        const int64_t row = outer * g.size + (backwards ? g.size - 1 - k : k);
        const int64_t at = (row * g.inner + inner) * g.stride;
        kernels::add_to(sums, from + at, lanes);
        if (accumulate)
          kernels::add_to(to + at, sums, lanes);
        else
          std::copy_n(sums, lanes, to + at);
      }
    }
}

Step forward(Plan& plan, Primitive& p) {
  const Geometry g = geometry_of(plan, p);
  return make_step(
      "running_sum", "", {p.in[0]}, {p.out, plan.scratch("sums", g.stride)},
      [=, &plan, out = p.out, backwards = p.as<RunningSumPayload>().backwards,
       accumulate = p.accumulate](const Run& run, const float* x, float* y, float* row) {
        add_up(g, x, y, plan.lanes(out, run), backwards, accumulate, row);
      });
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  auto own = p.as<RunningSumPayload>();
  own.backwards = !own.backwards;
  backward.send("running_sum", {.in = {gradient}, .payload = own}, p.in[0]);
}

void reference(Reference& call) {
  const auto& own = call.primitive.as<RunningSumPayload>();
  const size_t dim = dimension_of(call.plan.at(call.primitive.out), own.place);
  const Dict attributes{{"dim", static_cast<int64_t>(dim)}};
  if (own.backwards)  // the gradient of one is the other
    run_op_gradient(call, "cumsum", attributes, {&call.in[0]}, call.in[0], call.in[0]);
  else
    run_op(call, "cumsum", attributes);
}

Slot generate(Trial& trial) {
  const Shape sample = {trial.size(1, 9, 64), trial.size(1, 9, 16), trial.size(1, 5, 1)};
  const Slot sums = trial.to().primitive("running_sum", Dict{{"dim", trial.size(1, 3, 1)}},
                                         {trial.activation(sample)});
  trial.plan().primitives.back().as<RunningSumPayload>().backwards = trial.coin();
  return sums;
}

const Register<PrimitiveRecord> registered{{
    .name = "running_sum",
    .summary = "the sum of all rows of an axis up to each one",
    .payload = typeid(RunningSumPayload),
    .variants = {{"vectors", forward}},
    .reference = reference,
    .accumulates = true,
    .gradient = gradient,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .lower = lower,
}};

}  // namespace
}  // namespace mase::engine::running_sum_primitive
