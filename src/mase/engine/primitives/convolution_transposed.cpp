// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/convolution_transposed.h"

#include "mase/engine/payloads.h"
#include "mase/engine/primitives/convolution.h"
#include "mase/engine/primitives/convolution_products.h"
#include "mase/engine/primitives/quantize.h"

namespace mase::engine {
namespace convolution_primitive {

std::optional<Lowering::Convolution> turned_back(Lowering::Convolution options) {
  Windows& windows = options.windows;
  if (options.padding_mode != PaddingMode::zeros) return {};
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    const int64_t reach = windows.dilation[i] * (windows.kernel[i] - 1);
    if (windows.stride[i] != 1 || reach < windows.padding_before[i]) return {};
    windows.padding_before[i] = reach - windows.padding_before[i];
    windows.padding_after[i] = reach - windows.padding_after[i];
  }
  return options;
}

TensorInfo turned_weights(const Plan& plan, int weight, int64_t groups) {
  TensorInfo info = plan.at(weight);
  info.name += " turned";
  info.shape[0] = plan.at(weight).shape[1] * groups;
  info.shape[1] = plan.at(weight).shape[0] / groups;
  info.place = Place::arena;
  info.view_of = info.before_rounding = -1;
  info.pinned = info.differentiable = false;
  return info;
}

std::optional<Step> turned(Plan& plan, Primitive& p) {
  const auto& own = p.as<ConvolutionPayload>();
  const bool training = plan.options.training;
  if (!own.transposed || !(training || plan.at(p.weight).constant)) return {};
  const std::optional<Lowering::Convolution> back = turned_back(own.options);
  if (!back) return {};
  Primitive turn{.record = &find_primitive("turn_taps"),
                 .in = {p.weight},
                 .payload = TurnTapsPayload{own.options.groups}};
  turn.out = plan.add(turned_weights(plan, p.weight, own.options.groups));
  Step before = first_step(plan, turn);
  Primitive product = p;
  product.weight = turn.out;
  product.payload = ConvolutionPayload{.options = *back, .transforms = false};
  if (!training) {  // the weights stay as they are
    plan.prepare.push_back(std::move(before));
    return first_step(plan, product);
  }
  Step step = first_step(plan, product);
  step.kernel = "transposed_" + step.kernel;
  step.read({p.weight});
  step.write({turn.out});
  step.bind = [turn = before.bind, multiply = step.bind](const Memory& memory) -> Kernel {
    return [first = turn(memory), second = multiply(memory)](const Run& run) {
      first(run);
      second(run);
    };
  };
  return step;
}

std::optional<Step> tap_by_tap(Plan& plan, Primitive& p) {
  if (!p.as<ConvolutionPayload>().transposed) return {};
  const Geometry g = geometry_of(plan, p);
  Step step{"transposed_convolution", detail_of(g), {p.in[0], p.weight}, {p.out}};
  step.read({p.bias});
  const int scratch = plan.scratch("planes", g.plane_floats());
  const int packed = plan.scratch("taps", element_count(plan.at(p.weight).shape));
  step.write({scratch, packed});
  step.bind = [=, in = p.in[0], weight = p.weight, bias = p.bias, out = p.out,
               accumulate = p.accumulate](const Memory& memory) -> Kernel {
    return [=, tables = tables_of(g), w = memory[weight], b = memory.at(bias), from = memory[in],
            to = memory[out], planes = memory[scratch], taps = memory[packed]](const Run& run) {
      run_transposed(g, *tables, w, b, from, to, planes, taps, run.n, accumulate);
    };
  };
  return step;
}

}  // namespace convolution_primitive

void convolution_gradient(Backward& backward, const Primitive& p, int gradient) {
  using namespace convolution_primitive;
  const Plan& plan = backward.plan();
  const auto own = p.as<ConvolutionPayload>();
  const BackwardOperands to = backward_operands(backward, p, own.backward, gradient);
  backward.send("convolution_weights",
                {.in = {to.x, to.gradient},
                 .payload = ConvolutionWeightsPayload{own.options, own.transposed,
                                                      may_be_transformed(plan, p)}},
                p.weight);
  if (!own.bias_cancels)
    backward.send("lane_sums", {.in = {to.gradient}, .payload = LaneSumsPayload{1}}, p.bias);
  if (!backward.wanted(p.in[0])) return;
  Primitive image{.in = {to.gradient},
                  .weight = to.weight,
                  .payload = ConvolutionPayload{
                      .options = own.options, .transposed = !own.transposed, .transforms = false}};
  if (const auto back = own.transposed ? std::nullopt : turned_back(own.options)) {
    const int64_t groups = own.options.groups;
    image.weight =
        backward.compute("turn_taps", {.in = {to.weight}, .payload = TurnTapsPayload{groups}},
                         turned_weights(plan, to.weight, groups));
    image.payload = ConvolutionPayload{.options = *back, .transforms = !own.backward};
  }
  backward.send("convolution", std::move(image), p.in[0]);
}

}  // namespace mase::engine
