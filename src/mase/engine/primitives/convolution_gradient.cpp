// SPDX-License-Identifier: Apache-2.0
// The gradients of a convolution: those of its weights and its bias, and that of its image.
#include <optional>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitives/convolution.h"
#include "mase/engine/primitives/convolution_to_image.h"
#include "mase/engine/primitives/quantize.h"

namespace mase::engine {
namespace convolution_primitive {
namespace {

void weights_and_bias(Backward& backward, const Primitive& p, const Geometry& g, int x,
                      int gradient) {
  Plan& plan = backward.plan();
  const auto& own = p.as<ConvolutionPayload>();
  const int bias = own.bias_cancels ? -1 : p.bias;
  if (!backward.wanted(p.weight) && !backward.wanted(bias)) return;
  const Target w = backward.target(p.weight), b = backward.target(bias);
  Step step{"convolution_weight_gradient", detail_of(g), {x, gradient}, {}};
  step.write({w.tensor, b.tensor});
  const auto winograd = w.tensor >= 0 ? winograd_of(plan, p, true) : std::nullopt;
  const auto depthwise = Depthwise::of(g, plan.options.batch_size);
  if (winograd) winograd->join(step);
  if (depthwise) depthwise->join(step);
  const int scratch = winograd || depthwise ? -1 : plan.scratch("planes", g.plane_floats());
  step.write({scratch});
  const int64_t channels = plan.at(p.out).rows(), stride = plan.row_stride(p.out);
  step.bind = [=, &plan, out = p.out, transposed = own.transposed](const Memory& memory) -> Kernel {
    const auto tables = tables_of(g);
    std::optional<Winograd::Bound> tiles;
    if (winograd) tiles.emplace(*winograd, memory);
    return [=, &plan, from = memory[x], up = memory[gradient], dw = memory.at(w.tensor),
            db = memory.at(b.tensor), planes = memory.at(scratch)](const Run& run) {
      const float *image = transposed ? up : from, *result = transposed ? from : up;
      if (tiles)
        tiles->weights_gradient(image, result, dw, w.accumulate, run.n);
      else if (dw && depthwise)
        depthwise->weights_gradient(result, image, dw, w.accumulate, run.n);
      else if (dw)
        run_weights(g, *tables, result, image, planes, dw, run.n, w.accumulate);
      for (int64_t c = 0; db && c < channels; ++c) {
        const auto sum = static_cast<float>(kernels::sum(up + c * stride, plan.lanes(out, run)));
        db[c] = b.accumulate ? db[c] + sum : sum;
      }
    };
  };
  backward.push(std::move(step));
}

void image(Backward& backward, const Primitive& p, const Geometry& g, int weight, int gradient) {
  Plan& plan = backward.plan();
  const Target t = backward.target(p.in[0]);
  if (t.tensor < 0) return;
  Step step{"convolution_input_gradient", detail_of(g), {weight, gradient}, {t.tensor}};
  if (!p.as<ConvolutionPayload>().transposed) {
    const ToImage to_image(plan, p, g, step);
    step.bind = [=](const Memory& memory) {
      return to_image.kernel(memory[weight], nullptr, memory[gradient], memory[t.tensor], memory,
                             t.accumulate);
    };
    backward.push(std::move(step));
    return;
  }
  const int scratch = plan.scratch("planes", g.plane_floats());
  step.write({scratch});
  step.bind = [=](const Memory& memory) -> Kernel {
    const auto tables = tables_of(g);
    return [=, w = memory[weight], up = memory[gradient], to = memory[t.tensor],
            planes = memory[scratch]](const Run& run) {
      run_forward(g, *tables, w, nullptr, up, to, planes, run.n, {}, t.accumulate);
    };
  };
  backward.push(std::move(step));
}

}  // namespace
}  // namespace convolution_primitive

void convolution_gradient(Backward& backward, const Primitive& p, int gradient) {
  using namespace convolution_primitive;
  Plan& plan = backward.plan();
  const BackwardOperands operands =
      backward_operands(backward, p, p.as<ConvolutionPayload>().backward, gradient);
  const Geometry g = geometry_of(plan, p);
  weights_and_bias(backward, p, g, operands.x, operands.gradient);
  image(backward, p, g, operands.weight, operands.gradient);
}

}  // namespace mase::engine
