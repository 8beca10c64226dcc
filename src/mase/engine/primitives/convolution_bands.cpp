// SPDX-License-Identifier: Apache-2.0
// convolution_bands: [any convolution,] a depthwise one and a 1x1 one, row by row (bands.h). In
// inference only: nothing of what lies between them is kept for a gradient.
#include "mase/engine/primitives/convolution_bands.h"

#include "mase/engine/payloads.h"
#include "mase/engine/primitives/bands.h"
#include "mase/engine/primitives/convolution.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine {

bool join_into_bands(Plan& plan, const std::vector<Primitive*>& parts, size_t least) {
  if (!convolution_primitive::Bands::of(plan, {parts.begin(), parts.end()})) return false;
  size_t between = 0;
  for (const Primitive* p : parts)
    if (p != parts.back()) between += plan.floats(p->out);
  if (between < least) return false;
  ConvolutionBandsPayload bands;
  for (const Primitive* p : parts) bands.parts.push_back(*p);
  for (Primitive* p : parts) p->removed = p != parts.back();
  Primitive& p = *parts.back();
  const int add = p.epilogue.added();
  p.record = &find_primitive("convolution_bands");
  p.in = {parts.front()->in[0]};
  if (add >= 0) p.in.push_back(add);
  p.params.clear();
  for (const Primitive& part : bands.parts)
    for (const int tensor : part.reads())
      if (tensor != part.in[0] && tensor != add) p.params.emplace_back("", tensor);
  p.weight = p.bias = -1;
  p.epilogue = {};
  p.payload = std::move(bands);
  return true;
}

}  // namespace mase::engine

namespace mase::engine::convolution_bands_primitive {
namespace {

using convolution_primitive::Bands;

std::optional<Step> rows(Plan& plan, Primitive& p) {
  const std::vector<Primitive>& parts = p.as<ConvolutionBandsPayload>().parts;
  std::vector<const Primitive*> pointers;
  for (const Primitive& part : parts) pointers.push_back(&part);
  const std::optional<Bands> bands = Bands::of(plan, pointers);
  if (!bands) return {};
  Step step{p.in.size() > 1 ? "convolution_bands+add" : "convolution_bands", "", p.in, {p.out}};
  std::vector<std::string> details;
  std::vector<Factors> factors;
  for (const Primitive& part : parts) {
    details.push_back(detail_of(convolution_primitive::geometry_of(plan, part)));
    factors.push_back(factors_of(plan, part));
    step.read({factors.back().weight, factors.back().bias});
  }
  step.detail = fmt::format("{}", fmt::join(details, "; "));
  const int planes = plan.scratch("planes", bands->plane_floats());
  const int scratch = plan.scratch("bands", bands->scratch_floats());
  step.write({planes, scratch});
  const int in = p.in[0], out = p.out;
  step.bind = [=](const Memory& memory) -> Kernel {
    std::vector<Bands::Layer> layers;
    for (size_t i = 0; i < factors.size(); ++i)
      layers.push_back({memory[factors[i].weight], memory.at(factors[i].bias),
                        convolution_primitive::finish_of(factors[i].rest, memory)});
    return [bound = Bands::Bound(*bands, std::move(layers), memory[in], memory[out], memory[planes],
                                 memory[scratch])](const Run& run) { bound.run(run.n); };
  };
  return step;
}

void reference(Reference& call) {
  run_parts(call, call.primitive.as<ConvolutionBandsPayload>().parts);
}

Slot generate(Trial& trial) {
  trial.batch(8);
  Plan& plan = trial.plan();
  // With steps the first has any taps; without, one.
  const bool first = trial.coin(true), wide = trial.coin();
  const int64_t channels = trial.size(2, 9, 144);
  Slot x = trial.activation({first ? trial.size(1, 5, 24) : channels, trial.size(3, 12, 56),
                             wide ? trial.size(300, 400, 56) : trial.size(3, 20, 56)});
  std::vector<size_t> made;
  const auto convolution = [&](int64_t outs, int64_t groups, int64_t kernel, int64_t stride,
                               int64_t padding, int64_t dilation) {
    Lowering::Convolution options;
    options.groups = groups;
    options.windows = {{kernel, kernel},
                       {stride, stride},
                       {padding, padding},
                       {padding, padding},
                       {dilation, dilation}};
    for (size_t i = 2; i < 4; ++i)
      if (trial.to().shape(x)[i] + 2 * padding < dilation * (kernel - 1) + 1) return false;
    const Slot w = trial.parameter({outs, trial.to().shape(x)[1] / groups, kernel, kernel});
    std::optional<Slot> bias;
    if (trial.coin(true)) bias = trial.parameter({outs});
    x = trial.to().convolution(x, w, bias, options);
    made.push_back(plan.primitives.size() - 1);
    ClampStage limits;
    if (trial.coin(true)) limits.low = 0;
    if (trial.coin(true)) limits.high = 6;
    plan.primitives.back().epilogue.stages = {limits};
    return true;
  };
  const int64_t stride = trial.coin() ? 2 : 1;
  if (first && !convolution(channels, 1, stride > 1 ? trial.size(1, 3, 1) : 1, stride,
                            stride > 1 ? trial.below(2) : 0, 1))
    return -1;
  if (!convolution(channels, channels, trial.size(1, 4, 3), trial.size(1, 3, 1), trial.below(4, 1),
                   trial.size(1, 2, 1)) ||
      !convolution(trial.size(1, 9, 24), 1, 1, 1, 0, 1))
    return -1;
  if (trial.coin(true)) {
    const TensorInfo info = plan.at(x);
    const Slot add = trial.to().relayout(
        trial.activation(Shape(info.shape.begin() + 1, info.shape.end())), info.axes);
    std::vector<FusedStage>& stages = plan.primitives[made.back()].epilogue.stages;
    stages.insert(stages.begin(), AddStage{add});
  }
  std::vector<Primitive*> parts;
  for (const size_t index : made) parts.push_back(&plan.primitives[index]);
  return join_into_bands(plan, parts, 0) ? x : -1;
}

double multiply_adds(const Plan& plan, const Primitive& p) {
  double sum = 0;
  for (const Primitive& part : p.as<ConvolutionBandsPayload>().parts)
    sum += convolution_multiply_adds(plan, part);
  return sum;
}

const Register<PrimitiveRecord> registered{{
    .name = "convolution_bands",
    .summary = "convolutions one behind the other, row by row: any or none, depthwise, 1x1",
    .payload = typeid(ConvolutionBandsPayload),
    .variants = {{"rows", rows}},
    .reference = reference,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .multiply_adds = multiply_adds,
}};

}  // namespace
}  // namespace mase::engine::convolution_bands_primitive
