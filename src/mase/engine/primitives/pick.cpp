// SPDX-License-Identifier: Apache-2.0
// Rows of a dimension by numbers that are only known when it runs: pick takes whole rows by a list
// of numbers that is the same for all samples, gather a value for each number.
#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/lowerer.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::pick_primitives {
namespace {

struct PickPayload {
  int place = 0;  // of the axis among the rows
};
struct GatherRowsPayload {
  int place = 0;
};

int64_t checked(float number, int64_t size, const std::string& place) {
  if (!(number >= 0 && number < static_cast<float>(size)) || number != std::floor(number))
    throw Error(place, fmt::format("number {} for a dimension of {}", number, size),
                "numbers go from 0 to the size less 1");
  return static_cast<int64_t>(number);
}

// Rows as [outer][index][inner], of the operand and of the result.
struct Geometry {
  int64_t outer = 1, inner = 1, from = 1, to = 1, from_stride = 1, to_stride = 1;
  std::string place;

  int64_t source(int64_t o, int64_t index, int64_t i) const {
    return ((o * from + index) * inner + i) * from_stride;
  }
  int64_t target(int64_t o, int64_t index, int64_t i) const {
    return ((o * to + index) * inner + i) * to_stride;
  }
  // Calls body(outer, index of the result, inner) for all rows of the result.
  template <class Body>
  void each(const Body& body) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < to; ++k)
        for (int64_t i = 0; i < inner; ++i) body(o, k, i);
  }
};

Geometry geometry_between(const Plan& plan, const Primitive& p, int whole, int picked, int place) {
  const Shape in = plan.at(whole).row_shape(), out = plan.at(picked).row_shape();
  const auto axis = static_cast<size_t>(place);
  Geometry g;
  for (size_t i = 0; i < in.size(); ++i)
    if (i != axis) (i < axis ? g.outer : g.inner) *= in[i];
  g.from = in[axis];
  g.to = out[axis];
  g.from_stride = plan.row_stride(whole);
  g.to_stride = plan.row_stride(picked);
  if (p.node >= 0) g.place = plan.graph().node(p.node).name;
  return g;
}

Geometry geometry_of(const Plan& plan, const Primitive& p, int place) {
  return geometry_between(plan, p, p.in[0], p.out, place);
}

// Which row each number of the list means.
void read_numbers(const float* numbers, const Geometry& g, std::vector<int64_t>& rows) {
  for (size_t k = 0; k < rows.size(); ++k) rows[k] = checked(numbers[k], g.from, g.place);
}

Slot lower_pick(Lowerer& to, const Value& attributes, const std::vector<Slot>& operands) {
  Slot x = operands[0];
  const int64_t dim = attributes["dim"].as_int();
  if (!to.is_batch(x) || dim == 0 || !to.is_fixed(operands[1])) return -1;
  if (to.info(x).row_place(dim) < 0) x = to.flat(x);
  Shape shape = to.shape(x);
  shape[static_cast<size_t>(dim)] = to.shape(operands[1])[0];
  return to.add("pick", {.in = {x, operands[1]}, .payload = PickPayload{to.info(x).row_place(dim)}},
                shape, to.info(x).layout, to.info(x).axes);
}

Step pick(Plan& plan, Primitive& p) {
  const Geometry g = geometry_of(plan, p, p.as<PickPayload>().place);
  return make_step("pick", "", {p.in[0], p.in[1]}, {p.out},
                   [=, &plan, out = p.out, rows = std::vector<int64_t>(static_cast<size_t>(g.to))](
                       const Run& run, const float* from, const float* numbers, float* to) mutable {
                     read_numbers(numbers, g, rows);
                     const int64_t lanes = plan.lanes(out, run);
                     g.each([&](int64_t o, int64_t k, int64_t i) {
                       std::copy_n(from + g.source(o, rows[static_cast<size_t>(k)], i), lanes,
                                   to + g.target(o, k, i));
                     });
                   });
}

// Gradients: in are the gradient of the result and the numbers, out is that of the operand.
Step pick_gradient(Plan& plan, Primitive& p) {
  const Geometry g = geometry_between(plan, p, p.out, p.in[0], p.as<PickPayload>().place);
  return make_step(
      "pick_gradient", "", {p.in[0], p.in[1]}, {p.out},
      [=, &plan, up_tensor = p.in[0], floats = plan.floats(p.out), accumulate = p.accumulate,
       rows = std::vector<int64_t>(static_cast<size_t>(g.to))](
          const Run& run, const float* up, const float* numbers, float* to) mutable {
        if (!accumulate) std::fill_n(to, floats, 0.0f);
        read_numbers(numbers, g, rows);
        const int64_t lanes = plan.lanes(up_tensor, run);
        g.each([&](int64_t o, int64_t k, int64_t i) {
          kernels::add_to(to + g.source(o, rows[static_cast<size_t>(k)], i), up + g.target(o, k, i),
                          lanes);
        });
      });
}

Value dim_of(const Reference& call, int place) {
  const size_t dim = dimension_of(call.plan.at(call.primitive.out), place);
  return Dict{{"dim", static_cast<int64_t>(dim)}};
}

// Of the numbers' op: its gradient from the gradient of the result.
void gradient_reference(Reference& call, const char* op, int place) {
  run_op_gradient(call, op, dim_of(call, place), {&call.out, &call.in[1]}, call.in[0], call.in[0]);
}

Slot generate_pick(Trial& trial) {
  const Shape sample = {trial.size(1, 9, 64), trial.size(1, 9, 16), trial.size(1, 5, 4)};
  const int64_t dim = trial.size(1, 3, 1), size = sample[static_cast<size_t>(dim - 1)];
  const Slot list =
      trial.parameter({trial.size(1, 9, 64)}, {0, static_cast<double>(size - 1), true});
  return trial.to().primitive("pick", Dict{{"dim", dim}}, {trial.activation(sample), list});
}

Slot lower_gather(Lowerer& to, const Value& attributes, const std::vector<Slot>& operands) {
  const int64_t dim = attributes["dim"].as_int();
  if (!to.is_batch(operands[0]) || !to.is_batch(operands[1]) || dim == 0) return -1;
  const Shape x = to.shape(operands[0]), index = to.shape(operands[1]);
  for (size_t i = 0; i < x.size(); ++i)
    if (static_cast<int64_t>(i) != dim && x[i] != index[i]) return -1;
  const Slot from = to.flat(operands[0]), numbers = to.flat(operands[1]);
  return to.add("gather_rows",
                {.in = {from, numbers}, .payload = GatherRowsPayload{to.info(from).row_place(dim)}},
                index, to.info(from).layout, to.info(from).axes);
}

Step gather(Plan& plan, Primitive& p) {
  const Geometry g = geometry_of(plan, p, p.as<GatherRowsPayload>().place);
  return make_step("gather_rows", "", {p.in[0], p.in[1]}, {p.out},
                   [=, &plan, out = p.out, stride = plan.row_stride(p.in[1])](
                       const Run& run, const float* from, const float* numbers, float* to) {
                     const int64_t lanes = plan.lanes(out, run);
                     g.each([&](int64_t o, int64_t k, int64_t i) {
                       const float* row = numbers + g.target(o, k, i) / g.to_stride * stride;
                       float* y = to + g.target(o, k, i);
                       for (int64_t l = 0; l < lanes; ++l)
                         y[l] = from[g.source(o, checked(row[l], g.from, g.place), i) + l];
                     });
                   });
}

Step gather_gradient(Plan& plan, Primitive& p) {
  const Geometry g = geometry_between(plan, p, p.out, p.in[0], p.as<GatherRowsPayload>().place);
  return make_step("gather_rows_gradient", "", {p.in[0], p.in[1]}, {p.out},
                   [=, &plan, up_tensor = p.in[0], stride = plan.row_stride(p.in[1]),
                    floats = plan.floats(p.out), accumulate = p.accumulate](
                       const Run& run, const float* up, const float* numbers, float* to) {
                     if (!accumulate) std::fill_n(to, floats, 0.0f);
                     const int64_t lanes = plan.lanes(up_tensor, run);
                     g.each([&](int64_t o, int64_t k, int64_t i) {
                       const float* row = numbers + g.target(o, k, i) / g.to_stride * stride;
                       const float* y = up + g.target(o, k, i);
                       for (int64_t l = 0; l < lanes; ++l)
                         to[g.source(o, static_cast<int64_t>(row[l]), i) + l] += y[l];
                     });
                   });
}

Slot generate_gather(Trial& trial) {
  trial.batch(32);
  Shape sample = {trial.size(1, 9, 32), trial.size(1, 9, 16), trial.size(1, 5, 4)};
  const int64_t dim = trial.size(1, 3, 1), size = sample[static_cast<size_t>(dim - 1)];
  const Slot x = trial.activation(sample);
  sample[static_cast<size_t>(dim - 1)] = trial.size(1, 9, 16);
  const Slot numbers = trial.activation(sample, {0, static_cast<double>(size - 1), true});
  return trial.to().primitive("gather_rows", Dict{{"dim", dim}}, {x, numbers});
}

const Register<PrimitiveRecord> pick_record{{
    .name = "pick",
    .summary = "rows of a dimension by a list of numbers",
    .payload = typeid(PickPayload),
    .variants = {{"copies", pick}},
    .reference =
        [](Reference& call) {
          run_op(call, "index_select", dim_of(call, call.primitive.as<PickPayload>().place));
        },
    .gradient =
        [](Backward& backward, const Primitive& p, int gradient) {
          backward.send("pick_gradient", {.in = {gradient, p.in[1]}, .payload = p.payload},
                        p.in[0]);
        },
    .generate = generate_pick,
    .sample_by_sample = each_sample_alone,
    .lower = lower_pick,
}};
const Register<PrimitiveRecord> gather_record{{
    .name = "gather_rows",
    .summary = "values along a dimension by number",
    .payload = typeid(GatherRowsPayload),
    .variants = {{"values", gather}},
    .reference =
        [](Reference& call) {
          run_op(call, "gather", dim_of(call, call.primitive.as<GatherRowsPayload>().place));
        },
    .gradient =
        [](Backward& backward, const Primitive& p, int gradient) {
          backward.send("gather_rows_gradient", {.in = {gradient, p.in[1]}, .payload = p.payload},
                        p.in[0]);
        },
    .generate = generate_gather,
    .sample_by_sample = each_sample_alone,
    .lower = lower_gather,
}};

const Register<PrimitiveRecord> pick_gradient_record{{
    .name = "pick_gradient",
    .summary = "what each row gets from the gradients of where it was picked to",
    .payload = typeid(PickPayload),
    .variants = {{"sums", pick_gradient}},
    .reference =
        [](Reference& call) {
          gradient_reference(call, "index_select", call.primitive.as<PickPayload>().place);
        },
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("pick"); },
}};
const Register<PrimitiveRecord> gather_gradient_record{{
    .name = "gather_rows_gradient",
    .summary = "what each value gets from the gradients of where it was gathered to",
    .payload = typeid(GatherRowsPayload),
    .variants = {{"sums", gather_gradient}},
    .reference =
        [](Reference& call) {
          gradient_reference(call, "gather", call.primitive.as<GatherRowsPayload>().place);
        },
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("gather_rows"); },
}};

}  // namespace
}  // namespace mase::engine::pick_primitives
