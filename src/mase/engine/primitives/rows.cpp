// SPDX-License-Identifier: Apache-2.0
// Primitives that move or add up whole rows of lanes: permute (tensors without a batch), concat,
// and reduce, whose gradient gives each row of the input (a share of) one row of the result's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "mase/base/broadcast.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::row_primitives {
namespace {

int64_t product(const Shape& shape, size_t from, size_t to) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from),
                         shape.begin() + static_cast<std::ptrdiff_t>(to), int64_t{1},
                         std::multiplies<>());
}

// For every multi-index of the shape, in row-major order: the sum of index times stride.
std::vector<int32_t> places(const Shape& shape, const std::vector<int64_t>& strides) {
  std::vector<int32_t> result;
  std::vector<int64_t> position(shape.size(), 0);
  const int64_t rows = element_count(shape);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at = 0;
    for (size_t i = 0; i < shape.size(); ++i) at += position[i] * strides[i];
    result.push_back(static_cast<int32_t>(at));
    for (size_t i = shape.size(); i-- > 0;) {
      if (++position[i] < shape[i]) break;
      position[i] = 0;
    }
  }
  return result;
}

std::vector<int32_t> permuted_rows(const Plan& plan, const Primitive& p) {  // source of each row
  const std::vector<int64_t> from = row_major_strides(plan.at(p.in[0]).shape);
  std::vector<int64_t> strides;
  for (const int64_t dim : p.as<PermutePayload>().order)
    strides.push_back(from[static_cast<size_t>(dim)]);
  return places(plan.at(p.out).shape, strides);
}

// The row of the result that each row of the operand is in.
std::vector<int32_t> reduced_rows(const Plan& plan, int operand, const ReducePayload& own) {
  const Shape rows = plan.at(operand).row_shape();
  Shape kept = rows;
  for (const int place : own.rows) kept[static_cast<size_t>(place)] = 1;
  std::vector<int64_t> strides = row_major_strides(kept);
  for (const int place : own.rows) strides[static_cast<size_t>(place)] = 0;
  return places(rows, strides);
}

struct Parts {
  int64_t outer = 1;
  std::vector<int64_t> rows;  // of each part, per outer index
};

Parts parts_of(const Plan& plan, const Primitive& p) {
  Parts parts;
  const auto place = static_cast<size_t>(p.as<ConcatPayload>().place);
  parts.outer = product(plan.at(p.out).row_shape(), 0, place);
  for (const int part : p.in) {
    const Shape rows = plan.at(part).row_shape();
    parts.rows.push_back(product(rows, place, rows.size()));
  }
  return parts;
}

Step permute(Plan& plan, Primitive& p) {
  return make_step("permute", "", {p.in[0]}, {p.out},
                   [index = permuted_rows(plan, p), accumulate = p.accumulate](
                       const Run&, const float* from, float* to) {
                     for (size_t r = 0; r < index.size(); ++r) {
                       const float value = from[index[r]];
                       to[r] = accumulate ? to[r] + value : value;
                     }
                   });
}

Step concat(Plan& plan, Primitive& p) {
  Step step{"concat", "", p.in, {p.out}};
  const Parts parts = parts_of(plan, p);
  const int out = p.out;
  const int64_t stride = plan.row_stride(out);
  step.bind = [=, &plan, in = p.in](const Memory& memory) -> Kernel {
    std::vector<const float*> from;
    for (const int tensor : in) from.push_back(memory[tensor]);
    return [=, &plan, to = memory[out]](const Run& run) {
      const auto bytes = static_cast<size_t>(plan.lanes(out, run)) * sizeof(float);
      int64_t row = 0;
      for (int64_t outer = 0; outer < parts.outer; ++outer)
        for (size_t part = 0; part < from.size(); ++part)
          for (int64_t r = 0; r < parts.rows[part]; ++r)
            std::memcpy(to + row++ * stride, from[part] + (outer * parts.rows[part] + r) * stride,
                        bytes);
    };
  };
  return step;
}

// Sums over all positions of each sample. Lanes (positions, sample) or (sample, positions).
Step reduce_positions(Plan& plan, Primitive& p) {
  const auto kind = p.as<ReducePayload>().kind;
  const TensorView view = view_of(plan, p.in[0]);
  const bool sample_last = view.axes.lanes.back() == 0;
  return make_step(
      kind == ReduceKind::mean ? "reduce_mean" : "reduce_sum", "positions", {p.in[0]}, {p.out},
      [=, to_stride = plan.row_stride(p.out)](const Run& run, const float* from, float* to) {
        const auto share =
            kind == ReduceKind::mean ? 1.0f / static_cast<float>(view.positions) : 1.0f;
        for (int64_t r = 0; r < view.rows; ++r) {
          const float* row = from + r * view.stride;
          float* sums = to + r * to_stride;
          if (sample_last) {
            std::fill_n(sums, run.n, 0.0f);
            for (int64_t i = 0; i < view.positions; ++i)
              kernels::add_to(sums, row + i * run.n, run.n);
          } else {
            // A sample begins anywhere in its row: kernels::sum wants whole vectors from its start
            // on.
            for (int64_t b = 0; b < run.n; ++b) {
              const float* of = row + b * view.positions;
              sums[b] = static_cast<float>(std::accumulate(of, of + view.positions, 0.0));
            }
          }
          for (int64_t b = 0; b < run.n; ++b) sums[b] *= share;
        }
      });
}

Step reduce(Plan& plan, Primitive& p) {
  static const char* const names[] = {"reduce_sum", "reduce_mean", "reduce_max"};
  const auto& own = p.as<ReducePayload>();
  if (own.rows.empty()) return reduce_positions(plan, p);
  return make_step(
      names[static_cast<size_t>(own.kind)], "", {p.in[0]}, {p.out},
      [=, &plan, kind = own.kind, target = reduced_rows(plan, p.in[0], own), out = p.out,
       stride = plan.row_stride(p.out),
       rows = plan.at(p.out).rows()](const Run& run, const float* from, float* to) {
        const int64_t n = plan.lanes(out, run);
        if (stride == 1 && rows == 1 && kind != ReduceKind::max) {
          const auto count = static_cast<int64_t>(target.size());
          const double sum = kernels::sum(from, count);
          to[0] =
              static_cast<float>(kind == ReduceKind::mean ? sum / static_cast<double>(count) : sum);
          return;
        }
        const float start = kind == ReduceKind::max ? -INFINITY : 0.0f;
        for (int64_t r = 0; r < rows; ++r) std::fill_n(to + r * stride, n, start);
        for (size_t r = 0; r < target.size(); ++r) {
          float* sums = to + target[r] * stride;
          const float* row = from + static_cast<int64_t>(r) * stride;
          kernels::apply(kind == ReduceKind::max ? ScalarOp::max : ScalarOp::add, sums, row,
                         nullptr, sums, n);
        }
        if (kind != ReduceKind::mean) return;
        const float share = static_cast<float>(rows) / static_cast<float>(target.size());
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t b = 0; b < n; ++b) to[r * stride + b] *= share;
      });
}

// Gradients: in are the gradient of the result, the operand and the result, which only the gradient
// of a maximum reads; out is that of the operand.
Step positions_gradient(Plan& plan, Primitive& p) {
  const bool mean = p.as<ReducePayload>().kind == ReduceKind::mean;
  const TensorView view = view_of(plan, p.out);
  const bool sample_last = view.axes.lanes.back() == 0;
  return make_step("reduce_gradient", "positions", {p.in[0]}, {p.out},
                   [=, from_stride = plan.row_stride(p.in[0]), accumulate = p.accumulate](
                       const Run& run, const float* g, float* to) {
                     const float share = mean ? 1.0f / static_cast<float>(view.positions) : 1.0f;
                     const int64_t inner = sample_last ? run.n : view.positions;
                     const int64_t outer = sample_last ? view.positions : run.n;
                     for (int64_t r = 0; r < view.rows; ++r)
                       for (int64_t a = 0; a < outer; ++a)
                         for (int64_t b = 0; b < inner; ++b) {
                           const float d = g[r * from_stride + (sample_last ? b : a)] * share;
                           float& place = to[r * view.stride + a * inner + b];
                           place = accumulate ? place + d : d;
                         }
                   });
}

Step reduce_gradient(Plan& plan, Primitive& p) {
  const auto& own = p.as<ReducePayload>();
  if (own.rows.empty()) return positions_gradient(plan, p);
  const int64_t stride = plan.row_stride(p.in[0]);
  const int64_t rows = plan.at(p.out).rows(), out_rows = plan.at(p.in[0]).rows();
  const float share =
      own.kind == ReduceKind::mean ? static_cast<float>(out_rows) / static_cast<float>(rows) : 1.0f;
  const bool maximum = own.kind == ReduceKind::max;
  return make_step(
      "reduce_gradient", "", {p.in[0], maximum ? p.in[1] : -1, maximum ? p.in[2] : -1},
      {p.out, maximum ? plan.scratch("taken", out_rows * stride) : -1},
      [=, &plan, up = p.in[0], from = reduced_rows(plan, p.out, own), accumulate = p.accumulate](
          const Run& run, const float* g, const float* x, const float* y, float* to, float* used) {
        const int64_t n = plan.lanes(up, run);
        if (used) std::fill_n(used, out_rows * stride, 0.0f);
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t row = from[static_cast<size_t>(r)] * stride;
          for (int64_t b = 0; b < n; ++b) {
            float d = g[row + b] * share;
            if (used) {  // the first of equal maxima takes it all
              const bool takes = used[row + b] == 0 && x[r * stride + b] == y[row + b];
              if (takes) used[row + b] = 1;
              if (!takes) d = 0;
            }
            float& place = to[r * stride + b];
            place = accumulate ? place + d : d;
          }
        }
      });
}

void permute_gradient(Backward& backward, const Primitive& p, int gradient) {
  const std::vector<int64_t>& order = p.as<PermutePayload>().order;
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  backward.send("permute", {.in = {gradient}, .payload = PermutePayload{back}}, p.in[0]);
}

void concat_gradient(Backward& backward, const Primitive& p, int gradient) {
  const Plan& plan = backward.plan();
  const size_t dim = dimension_of(plan.at(p.out), p.as<ConcatPayload>().place);
  int64_t first = 0;
  for (const int part : p.in) {
    const int64_t size = plan.at(part).shape[dim];
    backward.send("slice", {.in = {gradient}, .payload = SlicePayload{dim, first, 1}}, part);
    first += size;
  }
}

void permute_reference(Reference& call) {
  List dims;
  for (const int64_t dim : call.primitive.as<PermutePayload>().order) dims.push_back(dim);
  run_op(call, "permute", Dict{{"dims", dims}});
}

void concat_reference(Reference& call) {
  const size_t dim =
      dimension_of(call.plan.at(call.primitive.out), call.primitive.as<ConcatPayload>().place);
  run_op(call, "cat", Dict{{"dim", static_cast<int64_t>(dim)}});
}

// The shape of the result with size 1 where it was reduced.
Shape kept_shape(const ReducePayload& own, const TensorInfo& info, Shape shape) {
  if (own.rows.empty()) {
    for (const int axis : info.axes.lanes)
      if (axis != 0) shape[static_cast<size_t>(axis)] = 1;
  } else {
    for (const int place : own.rows) shape[dimension_of(info, place)] = 1;
  }
  return shape;
}

void reduce_reference(Reference& call) {
  const auto& own = call.primitive.as<ReducePayload>();
  const bool maximum = own.kind == ReduceKind::max;
  Array kept(kept_shape(own, call.plan.at(call.primitive.in[0]), call.in[0].shape),
             maximum ? -INFINITY : 0.0);
  each_index(call.in[0].shape, [&](const Shape& index) {
    double& to = value_at(kept, index);
    const double value = value_at(call.in[0], index);
    to = maximum ? std::max(to, value) : to + value;
  });
  const double share =
      own.kind == ReduceKind::mean
          ? static_cast<double>(kept.data.size()) / static_cast<double>(call.in[0].data.size())
          : 1;
  for (size_t i = 0; i < kept.data.size(); ++i) call.out.data[i] = kept.data[i] * share;
}

void reduce_gradient_reference(Reference& call) {
  const auto& own = call.primitive.as<ReducePayload>();
  Array g = call.in[0];
  g.shape = kept_shape(own, call.plan.at(call.primitive.out), call.out.shape);
  const double share = own.kind == ReduceKind::mean ? static_cast<double>(g.data.size()) /
                                                          static_cast<double>(call.out.data.size())
                                                    : 1;
  Array most = g, taken(g.shape);
  if (own.kind == ReduceKind::max) most.data = call.in[2].data;
  // The first of equal maxima in the order of the rows takes it all.
  const TensorInfo& info = call.plan.at(call.primitive.out);
  std::vector<int> axes(info.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (info.layout == Layout::batch) {
    axes = info.axes.lanes;
    axes.insert(axes.end(), info.axes.rows.begin(), info.axes.rows.end());
  }
  Shape ordered, index(axes.size());
  for (const int axis : axes) ordered.push_back(call.out.shape[static_cast<size_t>(axis)]);
  each_index(ordered, [&](const Shape& at) {
    for (size_t i = 0; i < axes.size(); ++i) index[static_cast<size_t>(axes[i])] = at[i];
    if (own.kind == ReduceKind::max) {
      double& before = value_at(taken, index);
      if (before != 0 || value_at(call.in[1], index) != value_at(most, index)) return;
      before = 1;
    }
    value_at(call.out, index) = value_at(g, index) * share;
  });
}

Slot generate_permute(Trial& trial) {
  const Slot x =
      trial.parameter({trial.size(1, 9, 64), trial.size(1, 9, 64), trial.size(1, 9, 64)});
  const std::vector<int64_t> orders[] = {{2, 0, 1}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}};
  return trial.to().permute(x, orders[trial.below(4)]);
}

Slot generate_concat(Trial& trial) {
  Shape sample = {trial.size(1, 5, 16), trial.size(1, 5, 16), trial.size(1, 5, 4)};
  const int64_t dim = trial.size(1, 3, 1);
  std::vector<Slot> parts;
  for (int64_t i = trial.size(1, 4, 2); i > 0; --i) {
    sample[static_cast<size_t>(dim - 1)] = trial.size(1, 5, 16);
    parts.push_back(trial.activation(sample));
  }
  return trial.to().concat(parts, dim);
}

Slot generate_reduce(Trial& trial) {
  trial.batch(32);
  const Slot x =
      trial.activation({trial.size(1, 5, 64), trial.size(1, 5, 16), trial.size(1, 9, 16)});
  const std::vector<int64_t> dims[] = {{1}, {2}, {3}, {1, 2}, {2, 3}, {1, 3}, {1, 2, 3}};
  const ReduceKind kinds[] = {ReduceKind::sum, ReduceKind::mean, ReduceKind::max};
  return trial.to().reduce(kinds[trial.below(3, 1)], x, dims[trial.below(7, 4)], trial.coin());
}

const Register<PrimitiveRecord> permute_record{{
    .name = "permute",
    .summary = "dimensions of a tensor without a batch in another order",
    .payload = typeid(PermutePayload),
    .variants = {{"copies", permute}},
    .reference = permute_reference,
    .accumulates = true,
    .gradient = permute_gradient,
    .generate = generate_permute,
    .moves_values = true,
    .any_stride = true,
}};
const Register<PrimitiveRecord> concat_record{{
    .name = "concat",
    .summary = "rows of several tensors one behind the other",
    .payload = typeid(ConcatPayload),
    .variants = {{"copies", concat}},
    .reference = concat_reference,
    .gradient = concat_gradient,
    .generate = generate_concat,
    .sample_by_sample = each_sample_alone,
    .any_stride = true,
}};
const Register<PrimitiveRecord> reduce_record{{
    .name = "reduce",
    .summary = "sum, mean or maximum over rows or over all positions",
    .payload = typeid(ReducePayload),
    .variants = {{"vectors", reduce}},
    .reference = reduce_reference,
    .gradient =
        [](Backward& backward, const Primitive& p, int gradient) {
          const bool maximum = p.as<ReducePayload>().kind == ReduceKind::max;
          backward.send("reduce_gradient",
                        {.in = maximum ? std::vector<int>{gradient, p.in[0], p.out}
                                       : std::vector<int>{gradient},
                         .payload = p.payload},
                        p.in[0]);
        },
    .generate = generate_reduce,
    .sample_by_sample = each_sample_alone,
    .any_stride = true,
}};
const Register<PrimitiveRecord> reduce_gradient_record{{
    .name = "reduce_gradient",
    .summary = "what each row gets from the gradient of the sum, mean or "
               "maximum it is in",
    .payload = typeid(ReducePayload),
    .variants = {{"vectors", reduce_gradient}},
    .reference = reduce_gradient_reference,
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("reduce", true); },
}};

}  // namespace
}  // namespace mase::engine::row_primitives
