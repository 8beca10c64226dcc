// SPDX-License-Identifier: Apache-2.0
// Primitives that move single values: relayout (rows and lanes change places, or a tensor is
// repeated along the lanes), slice, and take (rows of a table by number).
#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/lowerer.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::move_primitives {
namespace {

// A copy of `whole`, repeated where it has size 1, or of a part of it (offset, step in dimension
// `dim`), to `part`; or back, adding up.
struct Move {
  TensorView whole, part;
  size_t dim = 0;
  int64_t start = 0, step = 1;

  void run(const float* from, float* to, int64_t n, bool back, bool accumulate) const {
    int64_t in[StridedCopy::most], out[StridedCopy::most];
    const size_t rank = part.shape.size(), skipped = rank - whole.shape.size();
    whole.strides(n, in);
    part.strides(n, out);
    StridedCopy copy;
    int64_t offset = 0;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t size = i == 0 && part.layout == Layout::batch ? n : part.shape[i];
      int64_t stride = 0;
      if (i >= skipped) {
        const bool batch = i - skipped == 0 && whole.layout == Layout::batch;
        if (batch || whole.shape[i - skipped] != 1 || part.shape[i] == 1) stride = in[i - skipped];
      }
      if (i == dim && (start != 0 || step != 1)) {
        offset = start * stride;
        stride *= step;
      }
      copy.add(size, back ? out[i] : stride, back ? stride : out[i]);
    }
    if (back)
      copy.run(from, to + offset, accumulate);
    else
      copy.run(from + offset, to, accumulate);
  }
};

Step move_forward(const Move& move, const Primitive& p) {
  return make_step(p.record->name, "", {p.in[0]}, {p.out},
                   [=, accumulate = p.accumulate](const Run& run, const float* from, float* to) {
                     move.run(from, to, run.n, false, accumulate);
                   });
}

// Where values were left out or repeated: what is left out gets nothing, what is repeated the sum.
Step move_back(const Plan& plan, const Move& move, const Primitive& p) {
  return make_step(p.record->name, "", {p.in[0]}, {p.out},
                   [=, floats = plan.floats(p.out), accumulate = p.accumulate](
                       const Run& run, const float* from, float* to) {
                     if (!accumulate) std::fill_n(to, floats, 0.0f);
                     move.run(from, to, run.n, true, true);
                   });
}

Move relayout_of(const Plan& plan, int whole, int part) {
  return {view_of(plan, whole), view_of(plan, part)};
}

Step relayout(Plan& plan, Primitive& p) {
  return move_forward(relayout_of(plan, p.in[0], p.out), p);
}

Step sum_up(Plan& plan, Primitive& p) {
  return move_back(plan, relayout_of(plan, p.out, p.in[0]), p);
}

void relayout_gradient(Backward& backward, const Primitive& p, int gradient) {
  const Plan& plan = backward.plan();
  const TensorInfo &in = plan.at(p.in[0]), &out = plan.at(p.out);
  const bool same = in.shape == out.shape && in.layout == out.layout;
  backward.send(same ? "relayout" : "sum_up", {.in = {gradient}, .payload = RelayoutPayload{}},
                p.in[0]);
}

Move slice_of(const Plan& plan, const SlicePayload& own, int whole, int part) {
  return {view_of(plan, whole), view_of(plan, part), own.dim, own.start, own.step};
}

Step slice(Plan& plan, Primitive& p) {
  return move_forward(slice_of(plan, p.as<SlicePayload>(), p.in[0], p.out), p);
}

Step slice_gradient(Plan& plan, Primitive& p) {
  return move_back(plan, slice_of(plan, p.as<SlicePayload>(), p.out, p.in[0]), p);
}

// The row of the table; the numbers were given as floats, which hold them exactly below 2^24.
int64_t table_row(float number, int64_t rows, const std::string& place) {
  if (!(number >= 0 && number < static_cast<float>(rows)) || number != std::floor(number))
    throw Error(place, fmt::format("index {} for a table of {} rows", number, rows),
                "check the vocabulary and the data");
  return static_cast<int64_t>(number);
}

Step take(Plan& plan, Primitive& p) {
  const int64_t rows = plan.at(p.weight).shape[0], width = plan.at(p.weight).shape[1];
  return make_step("take", "", {p.in[0], p.weight}, {p.out},
                   [=, &plan, out = p.out, stride = plan.row_stride(p.out),
                    place = p.node >= 0 ? plan.graph().node(p.node).name : ""](
                       const Run& run, const float* numbers, const float* values, float* to) {
                     const int64_t lanes = plan.lanes(out, run);
                     for (int64_t l = 0; l < lanes; ++l) {
                       const float* row = values + table_row(numbers[l], rows, place) * width;
                       for (int64_t d = 0; d < width; ++d) to[d * stride + l] = row[d];
                     }
                   });
}

Step take_gradient(Plan& plan, Primitive& p) {  // in: the numbers, the gradient of the result
  const int64_t width = plan.at(p.out).shape[1], stride = plan.row_stride(p.in[1]);
  return make_step("take_gradient", "", {p.in[0], p.in[1]}, {p.out},
                   [=, &plan, up = p.in[1], floats = plan.floats(p.out), accumulate = p.accumulate,
                    untrained = p.as<TakePayload>().untrained](const Run& run, const float* numbers,
                                                               const float* g, float* to) {
                     if (!accumulate) std::fill_n(to, floats, 0.0f);
                     const int64_t lanes = plan.lanes(up, run);
                     for (int64_t l = 0; l < lanes; ++l) {
                       const auto number = static_cast<int64_t>(numbers[l]);
                       if (number == untrained) continue;
                       float* row = to + number * width;
                       for (int64_t d = 0; d < width; ++d) row[d] += g[d * stride + l];
                     }
                   });
}

void relayout_reference(Reference& call) {
  each_index(call.out.shape,
             [&](const Shape& index) { value_at(call.out, index) = value_at(call.in[0], index); });
}

void sum_up_reference(Reference& call) {
  each_index(call.in[0].shape,
             [&](const Shape& index) { value_at(call.out, index) += value_at(call.in[0], index); });
}

// The place in the whole of a place in the part.
Shape sliced_from(const SlicePayload& own, Shape index) {
  index[own.dim] = own.start + own.step * index[own.dim];
  return index;
}

void slice_reference(Reference& call) {
  const auto& own = call.primitive.as<SlicePayload>();
  each_index(call.out.shape, [&](const Shape& index) {
    value_at(call.out, index) = value_at(call.in[0], sliced_from(own, index));
  });
}

void slice_gradient_reference(Reference& call) {
  const auto& own = call.primitive.as<SlicePayload>();
  each_index(call.in[0].shape, [&](const Shape& index) {
    value_at(call.out, sliced_from(own, index)) = value_at(call.in[0], index);
  });
}

Value padding_of(const Primitive& p) {
  const int64_t untrained = p.as<TakePayload>().untrained;
  return Dict{{"padding_idx", untrained < 0 ? Value() : Value(untrained)}};
}

void take_reference(Reference& call) { run_op(call, "embedding", padding_of(call.primitive)); }

void take_gradient_reference(Reference& call) {
  const Value attributes = padding_of(call.primitive);
  OpCall own{attributes, {&call.in[0]}};
  own.params["weight"] = &call.out;
  call.out.data = find_op("embedding").grad(own, call.in[1], call.in[1]).params["weight"].data;
}

Slot generate_relayout(Trial& trial) {
  trial.batch(32);
  const Shape sample = {trial.size(1, 9, 64), trial.size(1, 9, 16), trial.size(1, 9, 16)};
  const bool repeated = trial.coin();
  Axes to = trial.coin() ? Axes::sequence(4) : Axes::channels(4);
  if (trial.coin()) std::swap(to.rows, to.lanes), to.lanes.push_back(0), std::erase(to.rows, 0);
  if (!repeated) return trial.to().relayout(trial.activation(sample), to);
  const Slot small =
      trial.coin() ? trial.parameter({sample[1], 1}) : trial.activation({1, sample[1], sample[2]});
  Shape shape = sample;
  shape.insert(shape.begin(), trial.plan().options.batch_size);
  return trial.to().spread(small, shape, to);
}

Slot generate_slice(Trial& trial) {
  const Shape sample = {trial.size(1, 9, 16), trial.size(1, 9, 16), trial.size(1, 9, 16)};
  const int64_t dim = trial.size(1, 3, 2), whole = sample[static_cast<size_t>(dim - 1)];
  const int64_t start = trial.below(whole, 1), step = trial.size(1, 3, 2);
  return trial.to().slice(trial.activation(sample), dim, start, step,
                          trial.size(1, (whole - start - 1) / step + 1, 7));
}

Slot generate_take(Trial& trial) {
  trial.batch(8);
  const int64_t rows = trial.size(1, 20, 1000);
  const Slot table = trial.parameter({rows, trial.size(1, 9, 384)});
  return trial.to().take(
      table, trial.activation({trial.size(1, 9, 128)}, {0, static_cast<double>(rows - 1), true}));
}

const Register<PrimitiveRecord> relayout_record{{
    .name = "relayout",
    .summary = "rows and lanes change places, or values are repeated along the lanes",
    .payload = typeid(RelayoutPayload),
    .variants = {{"copies", relayout}},
    .reference = relayout_reference,
    .accumulates = true,
    .gradient = relayout_gradient,
    .generate = generate_relayout,
    .sample_by_sample = each_sample_alone,
    .moves_values = true,
    .any_stride = true,
}};
const Register<PrimitiveRecord> sum_up_record{{
    .name = "sum_up",
    .summary = "what a repeated value gets: the sum of the gradients of where "
               "it stands",
    .payload = typeid(RelayoutPayload),
    .variants = {{"sums", sum_up}},
    .reference = sum_up_reference,
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("relayout"); },
}};
const Register<PrimitiveRecord> slice_record{{
    .name = "slice",
    .summary = "some indices of a dimension",
    .payload = typeid(SlicePayload),
    .variants = {{"copies", slice}},
    .reference = slice_reference,
    .accumulates = true,
    .gradient =
        [](Backward& backward, const Primitive& p, int gradient) {
          backward.send("slice_gradient", {.in = {gradient}, .payload = p.payload}, p.in[0]);
        },
    .generate = generate_slice,
    .sample_by_sample = each_sample_alone,
    .moves_values = true,
    .any_stride = true,
}};
const Register<PrimitiveRecord> slice_gradient_record{{
    .name = "slice_gradient",
    .summary = "a slice put back where it was, zeros elsewhere",
    .payload = typeid(SlicePayload),
    .variants = {{"copies", slice_gradient}},
    .reference = slice_gradient_reference,
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("slice"); },
}};
const Register<PrimitiveRecord> take_record{{
    .name = "take",
    .summary = "rows of a table by number",
    .payload = typeid(TakePayload),
    .variants = {{"copies", take}},
    .reference = take_reference,
    .gradient =
        [](Backward& backward, const Primitive& p, int gradient) {
          backward.send("take_gradient", {.in = {p.in[0], gradient}, .payload = p.payload},
                        p.weight);
        },
    .generate = generate_take,
    .sample_by_sample = each_sample_alone,
    .any_stride = true,
    // By name, with a row that is not trained. Operands: table, numbers.
    .lower =
        [](Lowerer& to, const Value& attributes, const std::vector<Slot>& operands) {
          return to.take_rows(operands[0], operands[1], attributes["untrained"].as_int());
        },
}};

const Register<PrimitiveRecord> take_gradient_record{{
    .name = "take_gradient",
    .summary = "what each row of a table gets from the gradients of where it "
               "was taken to",
    .payload = typeid(TakePayload),
    .variants = {{"sums", take_gradient}},
    .reference = take_gradient_reference,
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("take"); },
}};

}  // namespace
}  // namespace mase::engine::move_primitives
