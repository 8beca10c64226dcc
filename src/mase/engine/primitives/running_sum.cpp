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
  int place = 0;  // of the axis among the rows
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

Step step_of(Plan& plan, const Primitive& p, const char* name, int from, int to, bool backwards,
             bool accumulate) {
  Step step{name, "", {from}, {to}};
  const Geometry g = geometry_of(plan, p);
  const int sums = plan.scratch("sums", g.stride), out = p.out;
  step.write({sums});
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, &plan, x = memory[from], y = memory[to], row = memory[sums]](const Run& run) {
      add_up(g, x, y, plan.lanes(out, run), backwards, accumulate, row);
    };
  };
  return step;
}

Step forward(Plan& plan, Primitive& p) {
  return step_of(plan, p, "running_sum", p.in[0], p.out, false, false);
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  const Target t = backward.target(p.in[0]);
  if (t.tensor < 0) return;
  backward.push(
      step_of(backward.plan(), p, "running_sum_gradient", gradient, t.tensor, true, t.accumulate));
}

void reference(Reference& call) {
  const size_t dim =
      dimension_of(call.plan.at(call.primitive.out), call.primitive.as<RunningSumPayload>().place);
  each_index(call.out.shape, [&](const Shape& index) {
    Shape from = index;
    double sum = 0;
    for (from[dim] = 0; from[dim] <= index[dim]; ++from[dim]) sum += value_at(call.in[0], from);
    value_at(call.out, index) = sum;
  });
}

Slot generate(Trial& trial) {
  const Shape sample = {trial.size(1, 9, 64), trial.size(1, 9, 16), trial.size(1, 5, 1)};
  return trial.to().primitive("running_sum", Dict{{"dim", trial.size(1, 3, 1)}},
                              {trial.activation(sample)});
}

const Register<PrimitiveRecord> registered{{
    .name = "running_sum",
    .summary = "the sum of all rows of an axis up to each one",
    .payload = typeid(RunningSumPayload),
    .variants = {{"vectors", forward}},
    .reference = reference,
    .gradient = gradient,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .lower = lower,
}};

}  // namespace
}  // namespace mase::engine::running_sum_primitive
