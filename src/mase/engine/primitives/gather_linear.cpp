// SPDX-License-Identifier: Apache-2.0
// gather_linear: the samples of a batch and the small linear layers behind them, each with its
// batch norm and relu, without a tensor between them. In inference only.
#include "mase/engine/primitives/gather_linear.h"

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitives/fold.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine {

bool join_gather_linear(Plan& plan, Primitive& before, Primitive& linear) {
  const auto sizes = [&](const Primitive& layer) {  // [out, in]
    const Shape& w = plan.at(layer.weight).shape;
    return layer.as<LinearPayload>().transposed ? Shape{w[1], w[0]} : w;
  };
  GatherLinearPayload joined;
  if (before.is<GatherPayload>()) {
    const Shape& samples = plan.at(before.out).shape;
    if (samples.size() != 2 || !kernels::can_gather_linear(sizes(linear)[0], samples[1]))
      return false;
    joined.parts = {before};
  } else {
    joined = before.as<GatherLinearPayload>();
    std::vector<int64_t> features;
    for (size_t i = 1; i < joined.parts.size(); ++i) {
      if (joined.parts[i].as<LinearPayload>().transposed) return false;
      features.push_back(sizes(joined.parts[i])[1]);
    }
    for (const int64_t size : {sizes(linear)[1], sizes(linear)[0]}) features.push_back(size);
    if (linear.as<LinearPayload>().transposed || plan.at(linear.out).shape.size() != 2 ||
        !kernels::layers_in_registers(features))
      return false;
  }
  joined.parts.push_back(linear);
  before.removed = true;
  Primitive p = linear;
  p.record = &find_primitive("gather_linear");
  p.in = {};
  p.weight = p.bias = -1;
  p.epilogue = {};
  p.params = before.params;
  for (const int tensor : before.epilogue.reads()) p.params.emplace_back("", tensor);
  for (const int tensor : linear.reads())
    if (tensor != linear.in[0]) p.params.emplace_back("", tensor);
  p.payload = std::move(joined);
  linear = std::move(p);
  return true;
}

}  // namespace mase::engine

namespace mase::engine::gather_linear_primitive {
namespace {

Step vectors(Plan& plan, Primitive& p) {
  struct Layer {
    Factors factors;
    kernels::LinearShape shape;
  };
  const std::vector<Primitive> parts = p.as<GatherLinearPayload>().parts;
  const Primitive& source = parts.front();
  const int out = p.out;
  const Factors normal = factors_of(plan, source);
  Step step{"gather" + source.epilogue.text(), "", {}, {out}};
  step.read({normal.weight, normal.bias});
  std::vector<Layer> layers;
  for (size_t i = 1; i < parts.size(); ++i) {
    const Shape& w = plan.at(parts[i].weight).shape;
    const bool transposed = parts[i].as<LinearPayload>().transposed;
    kernels::LinearShape shape{};
    shape.out = transposed ? w[1] : w[0];
    shape.in = transposed ? w[0] : w[1];
    shape.out_step = transposed ? 1 : w[1];
    shape.in_step = transposed ? w[1] : 1;
    shape.threads = plan.options.threads;
    layers.push_back({factors_of(plan, parts[i]), shape});
    const Factors& factors = layers.back().factors;
    step.kernel += "+linear" + factors.rest.text();
    step.read({factors.weight, factors.bias});
    if (step.detail.empty()) step.detail = std::to_string(shape.in);
    step.detail += fmt::format(" -> {}", shape.out);
  }
  layers.front().shape.stride = plan.row_stride(out);
  const size_t placeholder = source.as<GatherPayload>().placeholder;
  step.bind = [=](const Memory& memory) -> Kernel {
    const kernels::Normalizer by{memory.at(normal.weight), memory.at(normal.bias),
                                 normal.rest.limits().low};
    std::vector<kernels::NextLayer> next;
    for (const Layer& layer : layers)
      next.push_back({layer.shape.out, layer.shape.out_step, layer.shape.in_step,
                      memory[layer.factors.weight], memory.at(layer.factors.bias),
                      layer.factors.rest.limits().is_relu()});
    const kernels::NextLayer first = next.front();
    next.erase(next.begin());
    return [=, geometry = layers.front().shape, to = memory[out]](const Run& run) {
      kernels::LinearShape shape = geometry;
      shape.n = run.n;
      kernels::gather_linear(run.inputs[placeholder], by.scale ? &by : nullptr, shape, first.w,
                             first.bias, first.relu, to, next);
    };
  };
  return step;
}

void reference(Reference& call) { run_parts(call, call.primitive.as<GatherLinearPayload>().parts); }

Slot generate(Trial& trial) {
  if (trial.to().training()) return -1;
  trial.batch(256);
  int64_t features = trial.size(1, 64, 16);
  Slot x = trial.sample_rows(features);
  for (int64_t layers = trial.size(1, 3, 3); layers > 0; --layers) {
    const int64_t outs = trial.size(1, 8, 8);
    if (trial.coin(true)) x = trial.fixed_norm(x);
    x = trial.to().linear(x, trial.parameter({outs, features}), trial.parameter({outs}));
    if (trial.coin(true)) x = trial.to().map(max(Expr::operand(0), 0.0), {x});
    features = outs;
  }
  return x;
}

const Register<PrimitiveRecord> registered{{
    .name = "gather_linear",
    .summary = "the samples of a batch and small linear layers behind them",
    .payload = typeid(GatherLinearPayload),
    .variants = {{"vectors", vectors}},
    .reference = reference,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .text =
        [](const Plan&, const Primitive& p) {
          std::string text = " of";
          for (const Primitive& part : p.as<GatherLinearPayload>().parts)
            text += " " + part.record->name + part.epilogue.text();
          return text;
        },
    .multiply_adds =
        [](const Plan& plan, const Primitive& p) {
          double sum = 0;
          for (const Primitive& part : p.as<GatherLinearPayload>().parts)
            if (part.record->multiply_adds) sum += part.record->multiply_adds(plan, part);
          return sum;
        },
}};

}  // namespace
}  // namespace mase::engine::gather_linear_primitive
