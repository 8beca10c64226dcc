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
  const int in = p.in[0], out = p.out;
  const bool accumulate = p.accumulate;
  Step step{p.record->name, "", {in}, {out}};
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, from = memory[in], to = memory[out]](const Run& run) {
      move.run(from, to, run.n, false, accumulate);
    };
  };
  return step;
}

// Where values were left out or repeated: what is left out gets nothing, what is repeated the sum.
void move_gradient(Backward& backward, const char* name, const Move& move, int in, int gradient) {
  const Target t = backward.target(in);
  if (t.tensor < 0) return;
  Step step{name, "", {gradient}, {t.tensor}};
  const size_t floats = backward.plan().floats(t.tensor);
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, from = memory[gradient], to = memory[t.tensor]](const Run& run) {
      if (!t.accumulate) std::fill_n(to, floats, 0.0f);
      move.run(from, to, run.n, true, true);
    };
  };
  backward.push(std::move(step));
}

Move relayout_of(const Plan& plan, const Primitive& p) {
  return {view_of(plan, p.in[0]), view_of(plan, p.out)};
}

Step relayout(Plan& plan, Primitive& p) { return move_forward(relayout_of(plan, p), p); }

void relayout_gradient(Backward& backward, const Primitive& p, int gradient) {
  const Plan& plan = backward.plan();
  const TensorInfo &in = plan.at(p.in[0]), &out = plan.at(p.out);
  if (in.shape == out.shape && in.layout == out.layout)
    backward.send("relayout", {.in = {gradient}, .payload = RelayoutPayload{}}, p.in[0]);
  else
    move_gradient(backward, "relayout_gradient", relayout_of(plan, p), p.in[0], gradient);
}

Move slice_of(const Plan& plan, const Primitive& p) {
  const auto& own = p.as<SlicePayload>();
  Move move{view_of(plan, p.in[0]), view_of(plan, p.out), own.dim, own.start, own.step};
  return move;
}

Step slice(Plan& plan, Primitive& p) { return move_forward(slice_of(plan, p), p); }

void slice_gradient(Backward& backward, const Primitive& p, int gradient) {
  move_gradient(backward, "slice_gradient", slice_of(backward.plan(), p), p.in[0], gradient);
}

// The row of the table; the numbers were given as floats, which hold them exactly below 2^24.
int64_t table_row(float number, int64_t rows, const std::string& place) {
  if (!(number >= 0 && number < static_cast<float>(rows)) || number != std::floor(number))
    throw Error(place, fmt::format("index {} for a table of {} rows", number, rows),
                "check the vocabulary and the data");
  return static_cast<int64_t>(number);
}

Step take(Plan& plan, Primitive& p) {
  Step step{"take", "", {p.in[0], p.weight}, {p.out}};
  const int64_t rows = plan.at(p.weight).shape[0], width = plan.at(p.weight).shape[1];
  const int64_t stride = plan.row_stride(p.out);
  const std::string place = p.node >= 0 ? plan.graph.node(p.node).name : "";
  step.bind = [=, &plan, in = p.in[0], table = p.weight,
               out = p.out](const Memory& memory) -> Kernel {
    return
        [=, &plan, numbers = memory[in], values = memory[table], to = memory[out]](const Run& run) {
          const int64_t lanes = plan.lanes(out, run);
          for (int64_t l = 0; l < lanes; ++l) {
            const float* row = values + table_row(numbers[l], rows, place) * width;
            for (int64_t d = 0; d < width; ++d) to[d * stride + l] = row[d];
          }
        };
  };
  return step;
}

void take_gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const Target t = backward.target(p.weight);
  if (t.tensor < 0) return;
  Step step{"take_gradient", "", {p.in[0], gradient}, {t.tensor}};
  const int64_t width = plan.at(p.weight).shape[1], stride = plan.row_stride(p.out);
  const size_t floats = plan.floats(t.tensor);
  const int64_t untrained = p.as<TakePayload>().untrained;
  step.bind = [=, &plan, in = p.in[0], out = p.out](const Memory& memory) -> Kernel {
    return [=, &plan, numbers = memory[in], g = memory[gradient],
            to = memory[t.tensor]](const Run& run) {
      if (!t.accumulate) std::fill_n(to, floats, 0.0f);
      const int64_t lanes = plan.lanes(out, run);
      for (int64_t l = 0; l < lanes; ++l) {
        const auto number = static_cast<int64_t>(numbers[l]);
        if (number == untrained) continue;
        float* row = to + number * width;
        for (int64_t d = 0; d < width; ++d) row[d] += g[d * stride + l];
      }
    };
  };
  backward.push(std::move(step));
}

void relayout_reference(Reference& call) {
  each_index(call.out.shape,
             [&](const Shape& index) { value_at(call.out, index) = value_at(call.in[0], index); });
}

void slice_reference(Reference& call) {
  const auto& own = call.primitive.as<SlicePayload>();
  each_index(call.out.shape, [&](const Shape& index) {
    Shape from = index;
    from[own.dim] = own.start + own.step * index[own.dim];
    value_at(call.out, index) = value_at(call.in[0], from);
  });
}

void take_reference(Reference& call) {
  const auto width = static_cast<size_t>(call.weight.shape[1]);
  for (size_t i = 0; i < call.in[0].data.size(); ++i)
    std::copy_n(call.weight.data.begin() +
                    static_cast<std::ptrdiff_t>(static_cast<size_t>(call.in[0].data[i]) * width),
                width, call.out.data.begin() + static_cast<std::ptrdiff_t>(i * width));
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
}};
const Register<PrimitiveRecord> slice_record{{
    .name = "slice",
    .summary = "some indices of a dimension",
    .payload = typeid(SlicePayload),
    .variants = {{"copies", slice}},
    .reference = slice_reference,
    .accumulates = true,
    .gradient = slice_gradient,
    .generate = generate_slice,
    .sample_by_sample = each_sample_alone,
    .moves_values = true,
}};
const Register<PrimitiveRecord> take_record{{
    .name = "take",
    .summary = "rows of a table by number",
    .payload = typeid(TakePayload),
    .variants = {{"copies", take}},
    .reference = take_reference,
    .gradient = take_gradient,
    .generate = generate_take,
    .sample_by_sample = each_sample_alone,
    // By name, with a row that is not trained. Operands: table, numbers.
    .lower =
        [](Lowerer& to, const Value& attributes, const std::vector<Slot>& operands) {
          return to.take_rows(operands[0], operands[1], attributes["untrained"].as_int());
        },
}};

}  // namespace
}  // namespace mase::engine::move_primitives
