// SPDX-License-Identifier: Apache-2.0
// convolution_weights: what the weights of a convolution get from its image and the gradient of its
// result; of a transposed one, from the gradient of its image.
#include "mase/engine/payloads.h"
#include "mase/engine/primitives/convolution.h"
#include "mase/engine/primitives/convolution_products.h"
#include "mase/engine/primitives/depthwise.h"
#include "mase/engine/primitives/winograd.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::convolution_weights_primitive {
namespace {

using namespace convolution_primitive;

// Where the image and the result of the convolution are.
struct Operands {
  int image, result;
};
Operands operands_of(const Primitive& p) {
  const bool transposed = p.as<ConvolutionWeightsPayload>().transposed;
  return {p.in[transposed ? 1 : 0], p.in[transposed ? 0 : 1]};
}

Geometry geometry(const Plan& plan, const Primitive& p) {
  const auto [image, result] = operands_of(p);
  return geometry_of(plan, p.as<ConvolutionWeightsPayload>().options, image, result);
}

Step step_of(const Primitive& p, const Geometry& g) {
  return {"convolution_weights", detail_of(g), p.in, {p.out}};
}

std::optional<Step> winograd(Plan& plan, Primitive& p) {
  const auto& own = p.as<ConvolutionWeightsPayload>();
  const Operands operands = operands_of(p);
  if (own.transposed || !own.transforms) return {};
  const auto tiles =
      Winograd::of(plan, shape_of(plan, own.options, operands.image, operands.result), true);
  if (!tiles) return {};
  Step step = step_of(p, geometry(plan, p));
  tiles->join(step);
  step.bind = [=, out = p.out, accumulate = p.accumulate](const Memory& memory) -> Kernel {
    return [=, product = Winograd::Bound(*tiles, memory), image = memory[operands.image],
            result = memory[operands.result], to = memory[out]](const Run& run) {
      product.weights_gradient(image, result, to, accumulate, run.n);
    };
  };
  return step;
}

std::optional<Step> depthwise(Plan& plan, Primitive& p) {
  const Geometry g = geometry(plan, p);
  const auto channels = Depthwise::of(g, plan.options.batch_size);
  if (!channels) return {};
  Step step = step_of(p, g);
  channels->join(step);
  step.bind = [=, operands = operands_of(p), out = p.out,
               accumulate = p.accumulate](const Memory& memory) -> Kernel {
    return [=, image = memory[operands.image], result = memory[operands.result],
            to = memory[out]](const Run& run) {
      channels->weights_gradient(result, image, to, accumulate, run.n);
    };
  };
  return step;
}

std::optional<Step> rows(Plan& plan, Primitive& p) {
  const Geometry g = geometry(plan, p);
  Step step = step_of(p, g);
  const int scratch = plan.scratch("planes", g.plane_floats());
  step.write({scratch});
  step.bind = [=, operands = operands_of(p), out = p.out,
               accumulate = p.accumulate](const Memory& memory) -> Kernel {
    return
        [=, tables = tables_of(g), image = memory[operands.image], result = memory[operands.result],
         planes = memory[scratch], to = memory[out]](const Run& run) {
          run_weights(g, *tables, result, image, planes, to, run.n, accumulate);
        };
  };
  return step;
}

void reference(Reference& call) {
  const auto& own = call.primitive.as<ConvolutionWeightsPayload>();
  const Array &image = call.in[own.transposed ? 1 : 0], &result = call.in[own.transposed ? 0 : 1];
  each_product(own.options, call.out.shape, image.shape, result.shape,
               [&](const Shape& at, const Shape& tap, const Shape& place) {
                 value_at(call.out, tap) += value_at(result, at) * value_at(image, place);
               });
}

Slot generate(Trial& trial) {
  const Slot y = generate_convolution(trial);
  if (y < 0) return -1;
  const Primitive layer = trial.plan().primitives.back();
  const auto& own = layer.as<ConvolutionPayload>();
  return trial.to().add("convolution_weights",
                        {.in = {layer.in[0], trial.beside(y)},
                         .payload = ConvolutionWeightsPayload{own.options, own.transposed, true}},
                        trial.to().shape(layer.weight), Layout::fixed);
}

const Register<PrimitiveRecord> registered{{
    .name = "convolution_weights",
    .summary = "the gradient of a convolution's weights",
    .payload = typeid(ConvolutionWeightsPayload),
    .variants = {{"winograd", winograd}, {"depthwise", depthwise}, {"rows", rows}},
    .reference = reference,
    .accumulates = true,
    .generate = generate,
    .multiply_adds =
        [](const Plan& plan, const Primitive& p) {
          const Shape& w = plan.at(p.out).shape;
          return static_cast<double>(element_count(plan.at(operands_of(p).result).shape) *
                                     (element_count(w) / w[0]));
        },
}};

}  // namespace
}  // namespace mase::engine::convolution_weights_primitive
