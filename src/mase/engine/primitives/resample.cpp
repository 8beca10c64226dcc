// SPDX-License-Identifier: Apache-2.0
// resample: along one dimension, each index of the result is a sum of some indices of the operand
// times numbers known beforehand, or a number by itself. Padding is one tap or none, interpolation
// is two.
#include <algorithm>

#include "mase/engine/kernels/add_scaled.h"
#include "mase/engine/lowerer.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::resample_primitive {
namespace {

struct Tap {
  int64_t from;
  float weight;
};

struct ResamplePayload {
  size_t dim = 0;
  std::vector<std::vector<Tap>> taps;  // of each index of the result
  float fill = 0;                      // of those that have none
};

// attributes: dim, taps ([[index, number], ...] of each index of the result), fill.
Slot lower(Lowerer& to, const Value& attributes, const std::vector<Slot>& operands) {
  Slot x = operands[0];
  Shape shape = to.shape(x);
  ResamplePayload payload;
  payload.dim = static_cast<size_t>(attributes["dim"].as_int());
  payload.fill = static_cast<float>(attributes["fill"].as_double());
  for (const Value& index : attributes["taps"].as_list()) {
    payload.taps.emplace_back();
    for (const Value& tap : index.as_list())
      payload.taps.back().push_back(
          {tap.as_list()[0].as_int(), static_cast<float>(tap.as_list()[1].as_double())});
  }
  if (to.is_batch(x) && payload.dim == 0) return -1;
  // A dimension among the lanes wants runs of samples inside it.
  if (to.is_batch(x) && to.info(x).row_place(static_cast<int64_t>(payload.dim)) < 0)
    x = to.relayout(x, Axes::channels(shape.size()));
  shape[payload.dim] = static_cast<int64_t>(payload.taps.size());
  return to.add("resample", {.in = {x}, .payload = payload}, shape, to.info(x).layout,
                to.info(x).axes);
}

// Memory as [outer][index][inner runs of `run` floats], so far apart.
struct Geometry {
  int64_t outer, inner, run;
  int64_t from_outer, from_index, to_outer, to_index, inner_step;
};

Geometry geometry_of(const TensorView& in, const TensorView& out, size_t dim, int64_t n) {
  Geometry g{1, 1, 1, 0, 0, 0, 0, 0};
  const auto product = [&](const std::vector<int>& axes, size_t begin, size_t end) {
    int64_t count = 1;
    for (size_t i = begin; i < end; ++i)
      count *= axes[i] == 0 ? n : in.shape[static_cast<size_t>(axes[i])];
    return count;
  };
  if (in.layout != Layout::batch) {
    for (size_t i = 0; i < in.shape.size(); ++i) (i < dim ? g.outer : g.run) *= in.shape[i];
    g.run /= in.shape[dim];
    g.from_index = g.to_index = g.run;
  } else if (const auto row = std::find(in.axes.rows.begin(), in.axes.rows.end(), dim);
             row != in.axes.rows.end()) {
    const auto place = static_cast<size_t>(row - in.axes.rows.begin());
    g.outer = product(in.axes.rows, 0, place);
    g.inner = product(in.axes.rows, place + 1, in.axes.rows.size());
    g.run = in.lanes(n);
    g.inner_step = in.stride;
    g.from_index = g.to_index = g.inner * in.stride;
  } else {
    const auto lane = std::find(in.axes.lanes.begin(), in.axes.lanes.end(), dim);
    const auto place = static_cast<size_t>(lane - in.axes.lanes.begin());
    // Rows of all that lies outside: the row itself, then the lanes before the dimension.
    const int64_t before = product(in.axes.lanes, 0, place);
    g.run = product(in.axes.lanes, place + 1, in.axes.lanes.size());
    g.from_index = g.to_index = g.run;
    g.outer = before;
    g.from_outer = in.shape[dim] * g.run;
    g.to_outer = out.shape[dim] * g.run;
    return g;
  }
  g.from_outer = in.shape[dim] * g.from_index;
  g.to_outer = out.shape[dim] * g.to_index;
  return g;
}

// Calls body(floats of the operand, of the result, index of the result) for every run.
template <class Body>
void each_run(const TensorView& in, const TensorView& out, const ResamplePayload& own, int64_t n,
              const Body& body) {
  const Geometry g = geometry_of(in, out, own.dim, n);
  const bool lanes =
      in.layout == Layout::batch &&
      std::find(in.axes.rows.begin(), in.axes.rows.end(), own.dim) == in.axes.rows.end();
  for (int64_t row = 0; row < (lanes ? in.rows : 1); ++row)
    for (int64_t outer = 0; outer < g.outer; ++outer)
      for (int64_t k = 0; k < out.shape[own.dim]; ++k)
        for (int64_t inner = 0; inner < g.inner; ++inner)
          body((lanes ? row * in.stride : 0) + outer * g.from_outer + inner * g.inner_step,
               (lanes ? row * out.stride : 0) + outer * g.to_outer + k * g.to_index +
                   inner * g.inner_step,
               static_cast<size_t>(k), g);
}

Step forward(Plan& plan, Primitive& p) {
  const TensorView in = view_of(plan, p.in[0]), out = view_of(plan, p.out);
  return make_step(
      "resample", "", {p.in[0]}, {p.out},
      [=, own = p.as<ResamplePayload>()](const Run& run, const float* from, float* to) {
        each_run(in, out, own, run.n, [&](int64_t a, int64_t b, size_t k, const Geometry& g) {
          std::fill_n(to + b, g.run, own.taps[k].empty() ? own.fill : 0.0f);
          for (const Tap& tap : own.taps[k])
            kernels::add_scaled(to + b, from + a + tap.from * g.from_index, tap.weight, g.run);
        });
      });
}

Step backward(Plan& plan, Primitive& p) {
  const TensorView in = view_of(plan, p.out), out = view_of(plan, p.in[0]);
  return make_step(
      "resample_gradient", "", {p.in[0]}, {p.out},
      [=, own = p.as<ResamplePayload>(), floats = plan.floats(p.out), accumulate = p.accumulate](
          const Run& run, const float* up, float* to) {
        if (!accumulate) std::fill_n(to, floats, 0.0f);
        each_run(in, out, own, run.n, [&](int64_t a, int64_t b, size_t k, const Geometry& g) {
          for (const Tap& tap : own.taps[k])
            kernels::add_scaled(to + a + tap.from * g.from_index, up + b, tap.weight, g.run);
        });
      });
}

// Calls tap(index of the operand, its weight) for the taps of this index of the result.
template <class Visit>
void each_tap(const ResamplePayload& own, const Shape& index, const Visit& visit) {
  Shape from = index;
  for (const Tap& tap : own.taps[static_cast<size_t>(index[own.dim])]) {
    from[own.dim] = tap.from;
    visit(from, tap.weight);
  }
}

void reference(Reference& call) {
  const auto& own = call.primitive.as<ResamplePayload>();
  each_index(call.out.shape, [&](const Shape& index) {
    double& sum = value_at(call.out, index);
    if (own.taps[static_cast<size_t>(index[own.dim])].empty()) sum = own.fill;
    each_tap(own, index,
             [&](const Shape& from, double weight) { sum += weight * value_at(call.in[0], from); });
  });
}

void backward_reference(Reference& call) {
  const auto& own = call.primitive.as<ResamplePayload>();
  each_index(call.in[0].shape, [&](const Shape& index) {
    each_tap(own, index, [&](const Shape& from, double weight) {
      value_at(call.out, from) += weight * value_at(call.in[0], index);
    });
  });
}

Slot generate(Trial& trial) {
  trial.batch(32);
  const Shape sample = {trial.size(1, 5, 16), trial.size(1, 9, 32), trial.size(1, 9, 32)};
  const bool fixed = trial.coin();
  const Slot x = fixed ? trial.parameter(sample) : trial.activation(sample);
  const int64_t dim = trial.size(fixed ? 0 : 1, fixed ? 2 : 3, 2);
  const int64_t size = sample[static_cast<size_t>(fixed ? dim : dim - 1)];
  List taps;
  for (int64_t k = trial.size(1, 12, 64); k > 0; --k) {
    List index;
    for (int64_t i = trial.size(0, 2, 2); i > 0; --i)
      index.emplace_back(List{trial.below(size), static_cast<double>(i) * 0.75 - 0.5});
    taps.emplace_back(index);
  }
  return trial.to().primitive("resample", Dict{{"dim", dim}, {"taps", taps}, {"fill", 1.5}}, {x});
}

const Register<PrimitiveRecord> registered{{
    .name = "resample",
    .summary = "sums of a dimension's indices with known weights: padding, "
               "interpolation",
    .payload = typeid(ResamplePayload),
    .variants = {{"vectors", forward}},
    .reference = reference,
    .gradient =
        [](Backward& backward, const Primitive& p, int gradient) {
          backward.send("resample_gradient", {.in = {gradient}, .payload = p.payload}, p.in[0]);
        },
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .lower = lower,
}};
const Register<PrimitiveRecord> gradient_record{{
    .name = "resample_gradient",
    .summary = "what each index gets from the gradient of the sums it is in",
    .payload = typeid(ResamplePayload),
    .variants = {{"vectors", backward}},
    .reference = backward_reference,
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("resample"); },
}};

}  // namespace
}  // namespace mase::engine::resample_primitive
