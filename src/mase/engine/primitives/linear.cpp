// SPDX-License-Identifier: Apache-2.0
// linear: y = w x + b over the rows, whatever the lanes are. In inference it takes a batch norm
// behind it (in its weights) and a relu.
#include <algorithm>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/primitives/fold.h"
#include "mase/engine/primitives/integer.h"
#include "mase/engine/primitives/quantize.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::linear_primitive {
namespace {

struct Geometry {
  kernels::LinearShape shape;
  int64_t groups;  // of rows, each with its own product
};

Geometry geometry_of(const Plan& plan, const Primitive& p) {
  const Shape& w = plan.at(p.weight).shape;
  const bool transposed = p.as<LinearPayload>().transposed;
  Geometry g{};
  const int64_t columns = w[1];
  g.shape.out = transposed ? w[1] : w[0];
  g.shape.in = transposed ? w[0] : w[1];
  g.shape.out_step = transposed ? 1 : columns;
  g.shape.in_step = transposed ? columns : 1;
  g.shape.stride = plan.row_stride(p.out);
  g.shape.threads = plan.options.threads;
  const Shape rows = plan.at(p.out).row_shape();
  g.groups = 1;
  for (size_t i = 0; i + 1 < rows.size(); ++i) g.groups *= rows[i];
  return g;
}

Step vectors(Plan& plan, Primitive& p) {
  const Factors factors = factors_of(plan, p);
  const Geometry geometry = geometry_of(plan, p);
  return make_step(
      "linear" + factors.rest.text(),
      fmt::format("{} -> {}", geometry.shape.in, geometry.shape.out),
      {p.in[0], factors.weight, factors.bias}, {p.out},
      [=, &plan, x = p.in[0], relu = factors.rest.limits().is_relu(), accumulate = p.accumulate](
          const Run& run, const float* from, const float* w, const float* b, float* to) {
        kernels::LinearShape shape = geometry.shape;
        shape.n = plan.lanes(x, run);
        for (int64_t i = 0; i < geometry.groups; ++i)
          kernels::linear(shape, w, b, from + i * shape.in * shape.stride,
                          to + i * shape.out * shape.stride, relu, accumulate);
      });
}

// As integers where the operands are such; a batch in which one is not is computed as above.
template <bool kTiles>
std::optional<Step> integers(Plan& plan, Primitive& p) {
  const Geometry geometry = geometry_of(plan, p);
  if (geometry.groups != 1 || p.accumulate || p.as<LinearPayload>().transposed) return {};
  if (p.epilogue.find<ScaleShiftStage>()) return {};  // its weights are no such numbers
  const int x = p.in[0], out = p.out, bias = p.bias;
  const auto product = IntegerProduct::of(plan, p, plan.row_stride(x), kTiles);
  if (!product) return {};
  Step step = vectors(plan, p);
  product->join(step);
  std::vector<int64_t> offsets;
  for (int64_t q = 0; q < product->quads(); ++q) offsets.push_back(q * product->stride());
  const bool relu = p.epilogue.limits().is_relu();
  step.bind = [=, &plan, in_floats = step.bind](const Memory& memory) -> Kernel {
    return [=, &plan, floats = in_floats(memory), bound = IntegerProduct::Bound(*product, memory),
            b = memory.at(bias), from = memory[x], to = memory[out]](const Run& run) {
      const int64_t lanes = plan.lanes(x, run), terms = product->terms();
      const uint32_t* quads = bound.pack(from, lanes);
      if (!quads) return floats(run);
      bound.run({.out = geometry.shape.out,
                 .in = terms,
                 .out_step = terms,
                 .in_step = 1,
                 .offsets = offsets.data(),
                 .y_stride = geometry.shape.stride,
                 .n = lanes,
                 .threads = geometry.shape.threads},
                b, quads, to, kernels::Finish::relu(relu));
    };
  };
  return step;
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  const auto& own = p.as<LinearPayload>();
  MASE_CHECK(p.epilogue.empty(), "a training program fuses nothing into linear");
  const BackwardOperands to = backward_operands(backward, p, own.backward, gradient);
  const size_t last = backward.plan().at(p.out).shape.size() - 1;
  backward.send("linear_weights",
                {.in = {to.x, to.gradient}, .payload = LinearWeightsPayload{own.transposed}},
                p.weight);
  if (!own.bias_cancels)
    backward.send("lane_sums", {.in = {to.gradient}, .payload = LaneSumsPayload{last}}, p.bias);
  backward.send("linear",
                {.in = {to.gradient},
                 .weight = to.weight,
                 .payload = LinearPayload{.transposed = !own.transposed}},
                p.in[0]);
}

void reference(Reference& call) {
  const Primitive& p = call.primitive;
  const bool transposed = p.as<LinearPayload>().transposed;
  each_index(call.out.shape, [&](const Shape& index) {
    Shape from = index;
    double sum = p.bias >= 0 ? value_at(call.bias, {index.back()}) : 0;
    for (from.back() = 0; from.back() < call.in[0].shape.back(); ++from.back())
      sum += value_at(call.in[0], from) *
             value_at(call.weight, transposed ? Shape{from.back(), index.back()}
                                              : Shape{index.back(), from.back()});
    value_at(call.out, index) = sum;
  });
}

Slot generate(Trial& trial) {
  trial.batch(256);
  const bool few_bits = trial.few_bits();  // then large enough for products of integers to pay
  const int64_t in = trial.size(few_bits ? 30 : 1, 40, 256);
  const int64_t out = trial.size(few_bits ? 36 : 1, 40, 256);
  const bool small = trial.coin(true);
  Slot x =
      trial.activation(small ? Shape{in} : Shape{trial.size(1, 5, 1), trial.size(1, 9, 1), in});
  if (!few_bits) {
    if (trial.coin()) return trial.to().matmul(x, trial.parameter({in, out}));
    std::optional<Slot> bias;
    if (trial.coin(true)) bias = trial.parameter({out});
    return trial.to().linear(x, trial.parameter({out, in}), bias);
  }
  // Numbers of few bits, for products of integers.
  const Slot weight = trial.rounded(trial.parameter({out, in}), 6, 4);
  return trial.to().linear(trial.rounded(x, 8, 5), weight,
                           trial.rounded(trial.parameter({out}), 8, 5));
}

const Register<PrimitiveRecord> registered{{
    .name = "linear",
    .summary = "a weight matrix times the rows",
    .payload = typeid(LinearPayload),
    .variants = {{"integer tiles", integers<true>, true, kernels::has_integer_tiles},
                 {"integers", integers<false>, true, kernels::has_integer_dot},
                 {"vectors", vectors}},
    .reference = reference,
    .accumulates = true,
    .gradient = gradient,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .stages = {StageKind::scale_shift, StageKind::clamp},
    .takes =
        [](const Plan& plan, const Primitive& p, const FusedStage& stage) {
          if (plan.options.training) return false;
          if (const auto* limits = std::get_if<ClampStage>(&stage)) return limits->is_relu();
          return !p.as<LinearPayload>().transposed && plan.at(p.out).shape.size() == 2 &&
                 has_plain_weights(plan, p);
        },
    .any_stride = true,
    .text =
        [](const Plan&, const Primitive& p) {
          const auto& own = p.as<LinearPayload>();
          return fmt::format("{}{}", own.transposed ? " transposed" : "",
                             own.bias_cancels ? " bias without gradient" : "");
        },
    .multiply_adds =
        [](const Plan& plan, const Primitive& p) {
          return static_cast<double>(element_count(plan.at(p.out).shape) *
                                     plan.at(p.in[0]).shape.back());
        },
}};

}  // namespace
}  // namespace mase::engine::linear_primitive
