// SPDX-License-Identifier: Apache-2.0
// The steps that round tensors, and their gradients: straight-through (no step at all: both sides
// share one gradient), a format's own rule, or a learned number that gets a gradient itself.
#include "mase/engine/primitives/quantize.h"

#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"
#include "mase/formats/groups.h"

namespace mase::engine {
namespace {

// The values of a tensor in row-major order, for what happens once.
std::vector<float> row_major(const float* data, const TensorView& view, int64_t n, Shape& shape) {
  shape = view.shape_for(n);
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  to_row_major(view, data, n, values.data());
  return values;
}

// The samples of all processes that share a batch, each of which has some or all of them.
std::vector<float> of_whole_batch(const Plan& plan, const Run& run, const std::vector<float>& own) {
  const auto n = static_cast<size_t>(run.n), width = own.size() / n;
  const auto first = static_cast<size_t>(run.batch->first_sample) * width;
  std::vector<double> all(static_cast<size_t>(run.batch->whole_size) * width);
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(first));
  plan.options.all_reduce(all);
  const double copies = run.global / static_cast<double>(run.batch->whole_size);
  std::vector<float> values(all.size());
  for (size_t i = 0; i < all.size(); ++i) values[i] = static_cast<float>(all[i] / copies);
  return values;
}

// A number of zero was not found yet: training finds it from the first batch, that of all processes
// together; evaluation goes on without.
bool find_number(const Plan& plan, const LearnedNumber& learned, const float* in,
                 const TensorView& view, const Run& run, float* number) {
  if (number[0] != 0) return true;
  if (!plan.options.training) return false;
  Shape shape;
  std::vector<float> values = row_major(in, view, run.n, shape);
  if (plan.options.all_reduce && view.layout == Layout::batch && run.batch->whole_size > 0) {
    values = of_whole_batch(plan, run, values);
    shape[0] = run.batch->whole_size;
  }
  learned.start(values.data(), shape, number);
  return true;
}

// Calls body(offset, row) for the pieces of a tensor that hold values: its rows without their
// padding, or all of it.
template <class Body>
void for_each_piece(const TensorView& view, int64_t n, Shape& shape, const Body& body) {
  if (view.layout != Layout::batch) {
    if (view.layout == Layout::free) shape = view.shape_at(n);
    body(int64_t{0}, int64_t{0});
    return;
  }
  shape[0] = view.lanes(n);
  for (int64_t r = 0; r < view.rows; ++r) body(r * view.stride, r);
}

// Rows have a number each where there are as many numbers as rows, or share the one there is.
int64_t number_stride(const Plan& plan, const Primitive& p, const TensorView& view) {
  if (view.layout != Layout::batch) return 0;
  const int64_t numbers = element_count(plan.at(p.weight).shape);
  MASE_CHECK(numbers == 1 || numbers == view.rows, "{} learned numbers for {} rows", numbers,
             view.rows);
  return numbers == 1 ? 0 : 1;
}

Shape piece_shape(const TensorView& view) {
  return view.layout == Layout::batch ? Shape{0} : view.shape;
}

Step emit_learned(Plan& plan, const Primitive& p) {
  const Quantizer* quantizer = p.as<QuantizePayload>().quantizer;
  const TensorView view = view_of(plan, p.out);
  return make_step("quantize", quantizer->format + ", learned", {p.in[0]}, {p.out, p.weight},
                   [=, &plan, each = number_stride(plan, p, view), shape = piece_shape(view)](
                       const Run& run, const float* from, float* to, float* number) mutable {
                     const LearnedNumber& learned = *quantizer->learned;
                     if (find_number(plan, learned, from, view, run, number)) {
                       for_each_piece(view, run.n, shape, [&](int64_t at, int64_t row) {
                         learned.quantize(from + at, number + row * each, to + at, shape);
                       });
                       return;
                     }
                     Shape whole;
                     std::vector<float> values = row_major(from, view, run.n, whole);
                     quantizer->quantize(values.data(), values.data(), whole);
                     from_row_major(view, values.data(), run.n, to);
                   });
}

Step emit_learned_gradient(Plan& plan, const Primitive& p, int gradient, Target x, Target number) {
  const Quantizer* quantizer = p.as<QuantizePayload>().quantizer;
  const TensorView view = view_of(plan, p.out);
  const int64_t count = element_count(plan.at(p.weight).shape);
  // LSQ balances the numbers' updates by the values each one serves, the batch not counted.
  const int64_t values = view.layout == Layout::batch
                             ? view.rows * view.positions
                             : element_count(plan.at(p.in[0]).shape) / std::max<int64_t>(1, count);
  return make_step(
      "quantize_gradient", quantizer->format + ", learned", {p.in[0], p.weight, gradient},
      {plan.scratch("gradients", static_cast<int64_t>(plan.floats(p.out))), x.tensor,
       number.tensor},
      [=, share = quantizer->learned->gradient_scale(values), each = number_stride(plan, p, view),
       shape = piece_shape(view), sums = std::vector<double>(static_cast<size_t>(count))](
          const Run& run, const float* from, const float* value, const float* g, float* scratch,
          float* dx, float* dn) mutable {
        std::fill(sums.begin(), sums.end(), 0.0);
        for_each_piece(view, run.n, shape, [&](int64_t offset, int64_t row) {
          float* to = dx && !x.accumulate ? dx + offset : scratch + offset;
          quantizer->learned->gradient(from + offset, value + row * each, g + offset, to,
                                       sums.data() + row * each, shape);
          if (dx && x.accumulate) kernels::add_to(dx + offset, to, element_count(shape));
        });
        for (int64_t i = 0; dn && i < count; ++i) {
          const auto d = static_cast<float>(sums[static_cast<size_t>(i)] * share);
          dn[i] = number.accumulate ? dn[i] + d : d;
        }
      });
}

// Rounds p.in[0] to p.out.
Step round_step(Plan& plan, const Primitive& p) {
  if (p.weight >= 0) return emit_learned(plan, p);
  const Quantizer* quantizer = p.as<QuantizePayload>().quantizer;
  const Draws draws{plan, *quantizer, p.stream};
  const TensorView view = view_of(plan, p.out);
  const bool batch = view.layout == Layout::batch;
  const auto step = [&](int scratch, auto body) {
    return make_step("quantize", quantizer->format, {p.in[0]}, {p.out, scratch}, body);
  };
  if (quantizer->elementwise && view.layout != Layout::free && !(draws.drawn && batch)) {
    // In any layout: one flat sweep over the rows, padding included.
    const int64_t count = batch ? view.rows * view.stride : element_count(view.shape);
    return step(-1,
                [=, shape = Shape{count}](const Run& run, const float* from, float* to, float*) {
                  quantizer->quantize(from, to, shape, draws.at(run, 0));
                });
  }
  if (quantizer->rounds_parts() && batch) {
    // Rows are features: each has the numbers of its group, and draws of its own.
    MASE_CHECK(view.positions == 1, "groups of positions");
    Shape sample = view.shape;
    sample[0] = 1;
    const Grouping groups = grouping(sample, quantizer->granularity);
    return step(-1, [=](const Run& run, const float* from, float* to, float*) {
      for (int64_t r = 0; r < view.rows; ++r)
        quantizer->quantize_part(groups.group_of(r), from + r * view.stride, to + r * view.stride,
                                 run.n, draws.at(run, static_cast<uint64_t>(r)),
                                 draws.first(run, 1));
    });
  }
  const int scratch = batch ? plan.scratch("row-major", element_count(view.shape)) : -1;
  return step(scratch, [=, shape = view.shape](const Run& run, const float* from, float* to,
                                               float* rows) mutable {
    if (batch) {
      shape[0] = run.n;
      to_row_major(view, from, run.n, rows);
      quantizer->quantize(rows, rows, shape, draws.at(run, 0),
                          draws.first(run, element_count(shape) / run.n));
      from_row_major(view, rows, run.n, to);
    } else {
      if (view.layout == Layout::free) shape = view.shape_at(run.n);
      quantizer->quantize(from, to, shape, draws.at(run, 0));
    }
  });
}

bool has_gradient_step(const Primitive& p) {
  return p.weight >= 0 || p.as<QuantizePayload>().quantizer->has_gradient();
}

Step gradient_step(Plan& plan, const Primitive& p, int gradient, Target t, Target number) {
  if (p.weight >= 0) return emit_learned_gradient(plan, p, gradient, t, number);
  const Quantizer* quantizer = p.as<QuantizePayload>().quantizer;
  const TensorView view = view_of(plan, p.out);
  const bool batch = view.layout == Layout::batch;
  const int64_t flat = batch ? view.rows * view.stride : element_count(view.shape);
  const bool elementwise = quantizer->elementwise && view.layout != Layout::free;
  const int values = plan.scratch("values", flat), ups = plan.scratch("gradients", flat);
  return make_step(
      "quantize_gradient", quantizer->format, {p.in[0], gradient}, {t.tensor, values, ups},
      [=, shape = elementwise ? Shape{flat} : view.shape](
          const Run& run, const float* x, const float* g, float* to, float* a, float* b) mutable {
        if (elementwise) {
          quantizer->gradient(x, g, t.accumulate ? b : to, shape);
          if (t.accumulate) kernels::add_to(to, b, flat);
          return;
        }
        if (batch) {
          shape[0] = run.n;
          to_row_major(view, x, run.n, a);
          to_row_major(view, g, run.n, b);
          quantizer->gradient(a, b, b, shape);
          from_row_major(view, b, run.n, to, t.accumulate);
          return;
        }
        if (view.layout == Layout::free) shape = view.shape_at(run.n);
        quantizer->gradient(x, g, b, shape);
        for (int64_t i = 0; i < element_count(shape); ++i)
          to[i] = (t.accumulate ? to[i] : 0.0f) + b[i];
      });
}

}  // namespace

Draws::Draws(const Plan& plan, const Quantizer& quantizer, uint64_t own)
    : drawn(plan.options.training && quantizer.stochastic), seed(plan.options.seed), stream(own) {}

uint64_t Draws::at(const Run& run, uint64_t piece) const {
  return drawn ? random_draw(seed, run.batch->step, stream, piece) : 0;
}
int64_t Draws::first(const Run& run, int64_t values) const {
  return drawn ? run.batch->first_sample * values : 0;
}

uint64_t random_draw(uint64_t seed, uint64_t step, uint64_t stream, uint64_t piece) {
  uint64_t h = seed;
  for (const uint64_t word : {step, stream, piece}) {
    h = (h ^ word) + 0x9E3779B97F4A7C15u;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    h ^= h >> 31;
  }
  return h;
}

void share_straight_through(Plan& plan) {
  for (const Primitive& p : plan.primitives) {
    if (p.removed || !p.is<QuantizePayload>() || has_gradient_step(p)) continue;
    if (!plan.at(p.out).differentiable) continue;
    const int shared = gradient_of(plan, p.in[0]);
    plan.gradient.resize(plan.tensors.size(), -1);
    plan.gradient[static_cast<size_t>(p.out)] = shared;
  }
}

BackwardOperands backward_operands(Backward& backward, const Primitive& product,
                                   const Quantization* formats, int gradient) {
  BackwardOperands operands{gradient, product.in[0], product.weight};
  if (!formats) return operands;
  Plan& plan = backward.plan();
  uint64_t index = 0;  // tells the operands apart
  const auto rounded = [&](int tensor, const char* operand) {
    const uint64_t own = index++;
    const Quantizer* quantizer = formats->find_backward(operand);
    if (!quantizer) return tensor;
    TensorInfo info = plan.at(tensor);
    info.name += " rounded";
    info.rounding = quantizer;
    Primitive quantize{.in = {tensor}, .payload = QuantizePayload{quantizer}};
    quantize.stream = (uint64_t{1} << 32) + (static_cast<uint64_t>(product.out) << 2) + own;
    return backward.compute("quantize", std::move(quantize), std::move(info));
  };
  const int weight = plan.at(product.weight).before_rounding;
  operands.gradient = rounded(gradient, "output_grad");
  operands.x = rounded(product.params.at(0).second, "data_in");
  operands.weight = rounded(weight >= 0 ? weight : product.weight, "weight");
  return operands;
}

}  // namespace mase::engine

namespace mase::engine::quantize_primitive {
namespace {

void send_gradient(Backward& backward, const Primitive& p, int gradient) {
  if (!has_gradient_step(p)) return;  // straight-through: both sides share one gradient
  const Target x = backward.target(p.in[0]), number = backward.target(p.weight);
  if (x.tensor >= 0 || number.tensor >= 0)
    backward.push(gradient_step(backward.plan(), p, gradient, x, number));
}

void reference(Reference& call) {
  const Quantizer& quantizer = *call.primitive.as<QuantizePayload>().quantizer;
  std::vector<float> values(call.in[0].data.begin(), call.in[0].data.end());
  const std::vector<float> from = values;
  quantizer.reference(from.data(), values.data(), call.in[0].shape);
  call.out.data.assign(values.begin(), values.end());
}

Slot generate(Trial& trial) {
  trial.straight_through();
  const Slot x = trial.coin(true)
                     ? trial.activation({trial.size(1, 9, 64), trial.size(1, 9, 4)}, {-9, 9})
                     : trial.parameter({trial.size(1, 9, 64), trial.size(1, 40, 64)}, {-9, 9});
  return trial.rounded(x, static_cast<int>(trial.size(2, 12, 8)),
                       static_cast<int>(trial.size(0, 9, 4)));
}

const Register<PrimitiveRecord> registered{{
    .name = "quantize",
    .summary = "rounds a tensor to a number format",
    .payload = typeid(QuantizePayload),
    .variants = {{"vectors", [](Plan& plan, Primitive& p) { return round_step(plan, p); }}},
    .reference = reference,
    .gradient = send_gradient,
    .generate = generate,
    .sample_by_sample =
        [](const Primitive& p) {
          const Quantizer& quantizer = *p.as<QuantizePayload>().quantizer;
          return quantizer.elementwise && !quantizer.stochastic;
        },
    .as_stage = [](const Plan&, const Primitive& p, int) -> std::optional<FusedStage> {
      const Quantizer* quantizer = p.as<QuantizePayload>().quantizer;
      if (!quantizer->elementwise || has_gradient_step(p)) return {};  // straight-through
      return RoundStage{quantizer, p.stream};
    },
    .any_stride = true,
    .text = [](const Plan&,
               const Primitive& p) { return " to " + p.as<QuantizePayload>().quantizer->format; },
}};

}  // namespace
}  // namespace mase::engine::quantize_primitive
