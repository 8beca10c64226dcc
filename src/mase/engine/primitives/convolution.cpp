// SPDX-License-Identifier: Apache-2.0
// convolution: a sum over the taps of weights times the image shifted along the lanes; the dense
// kernel with a table of where each channel and tap begins. Its gradients are the same sums the
// other way round, and a transposed convolution is one of them as an operation.
#include "mase/engine/primitives/convolution.h"

#include "mase/engine/payloads.h"
#include "mase/engine/primitives/convolution_products.h"
#include "mase/engine/primitives/convolution_transposed.h"
#include "mase/engine/primitives/depthwise.h"
#include "mase/engine/primitives/output_lanes.h"
#include "mase/engine/primitives/winograd.h"
#include "mase/engine/primitives/winograd_rows.h"

namespace mase::engine::convolution_primitive {
namespace {

Step step_of(const Primitive& p, const Geometry& g, const Factors& factors) {
  Step step{p.as<ConvolutionPayload>().transposed ? "transposed_convolution" : "convolution",
            detail_of(g),
            {p.in[0], factors.weight},
            {p.out}};
  step.kernel += factors.rest.text();
  step.read({factors.bias, factors.rest.added()});
  return step;
}

// What was there is added where the kernel does not do so itself.
kernels::Finish finish_of(const Primitive& p, const Epilogue& epilogue, const Memory& memory) {
  return p.accumulate ? kernels::Finish{.add = memory[p.out]}
                      : convolution_primitive::finish_of(epilogue, memory);
}

std::optional<Step> depthwise(Plan& plan, Primitive& primitive) {
  const Primitive p = primitive;
  const Geometry g = geometry_of(plan, p);
  if (p.as<ConvolutionPayload>().transposed) return {};
  const auto channels = Depthwise::of(g, plan.options.batch_size);
  if (!channels) return {};
  const Factors factors = factors_of(plan, p);
  Step step = step_of(p, g, factors);
  channels->join(step);
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, w = memory[factors.weight], b = memory.at(factors.bias), from = memory[p.in[0]],
            to = memory[p.out], finish = finish_of(p, factors.rest, memory)](const Run& run) {
      channels->forward(w, b, from, to, finish, run.n);
    };
  };
  return step;
}

std::optional<Step> winograd(Plan& plan, Primitive& primitive) {
  const Primitive p = primitive;
  if (!may_be_transformed(plan, p)) return {};
  const auto tiles =
      Winograd::of(plan, shape_of(plan, p.as<ConvolutionPayload>().options, p.in[0], p.out), false);
  if (!tiles) return {};
  const Factors factors = factors_of(plan, p);
  Step step = step_of(p, geometry_of(plan, p), factors);
  tiles->join(step);
  const bool fixed = !plan.options.training;
  if (fixed) plan.prepare.push_back(tiles->prepare(factors.weight));
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, product = Winograd::Bound(*tiles, memory), w = memory[factors.weight],
            b = memory.at(factors.bias), from = memory[p.in[0]], to = memory[p.out],
            finish = finish_of(p, factors.rest, memory)](const Run& run) {
      if (!fixed) product.transform_weights(w);
      product.forward(from, b, to, p.accumulate ? kernels::Finish{} : finish, p.accumulate, run.n);
    };
  };
  return step;
}

std::optional<Step> winograd_rows(Plan& plan, Primitive& primitive) {
  if (!may_be_transformed(plan, primitive)) return {};
  const Primitive p = primitive;
  const Geometry g = geometry_of(plan, p);
  const auto tiles = RowWinograd::of(plan, g);
  if (!tiles) return {};
  const Factors factors = factors_of(plan, p);
  Step step = step_of(p, g, factors);
  tiles->join(step);
  const bool fixed = !plan.options.training;
  if (fixed) plan.prepare.push_back(tiles->prepare(factors.weight));
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, product = RowWinograd::Bound(*tiles, memory), w = memory[factors.weight],
            b = memory.at(factors.bias), from = memory[p.in[0]], to = memory[p.out],
            finish = finish_of(p, factors.rest, memory)](const Run& run) {
      if (!fixed) product.transform_weights(w);
      product.forward(from, b, to, finish, run.n);
    };
  };
  return step;
}

std::optional<Step> output_lanes(Plan& plan, Primitive& primitive) {
  const Primitive p = primitive;
  if (p.as<ConvolutionPayload>().transposed || p.epilogue.find<AddStage>()) return {};
  const Geometry g = geometry_of(plan, p);
  const auto lanes = OutputLanes::of(plan, g);
  if (!lanes) return {};
  const Factors factors = factors_of(plan, p);
  Step step = step_of(p, g, factors);
  lanes->join(step);
  plan.prepare.push_back(lanes->prepare(factors.weight));
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, product = OutputLanes::Bound(*lanes, memory), b = memory.at(factors.bias),
            from = memory[p.in[0]], to = memory[p.out],
            finish = finish_of(p, factors.rest, memory)](const Run& run) {
      product.forward(from, b, to, finish, run.n);
    };
  };
  return step;
}

// Row by row of the result, or all of its rows as one (g.wide_stride).
Step product_step(Plan& plan, const Primitive& p, const Geometry& g) {
  const Factors factors = factors_of(plan, p);
  Step step = step_of(p, g, factors);
  const int scratch = plan.scratch("planes", g.plane_floats());
  const int wide = g.wide_stride ? plan.scratch("wide", g.result_channels * g.wide_stride) : -1;
  step.write({scratch, wide});
  step.bind = [=](const Memory& memory) -> Kernel {
    const auto tables = tables_of(g);
    return [=, w = memory[factors.weight], b = memory.at(factors.bias), from = memory[p.in[0]],
            to = memory[p.out], planes = memory[scratch], rows = memory.at(wide),
            finish = finish_of(p, factors.rest, memory)](const Run& run) {
      run_forward(g, *tables, w, b, from, to, planes, run.n,
                  p.accumulate ? kernels::Finish{} : finish, p.accumulate, rows);
    };
  };
  return step;
}

std::optional<Step> whole_planes(Plan& plan, Primitive& p) {
  Geometry g = geometry_of(plan, p);
  const int64_t batch = plan.options.batch_size;
  if (p.as<ConvolutionPayload>().transposed || p.accumulate || !worth_whole_planes(g.planes, batch))
    return {};
  g.wide_stride = padded_lanes(g.planes.result[0] * g.planes.pitch(batch));
  return product_step(plan, p, g);
}

std::optional<Step> rows(Plan& plan, Primitive& p) {
  if (p.as<ConvolutionPayload>().transposed) return {};
  return product_step(plan, p, geometry_of(plan, p));
}

// As integers where the operands are such; a batch in which one is not is computed as floats.
template <bool kTiles>
std::optional<Step> integers(Plan& plan, Primitive& primitive) {
  const Primitive p = primitive;
  const Geometry g = geometry_of(plan, p);
  if (g.groups != 1 || p.accumulate || p.as<ConvolutionPayload>().transposed) return {};
  if (p.epilogue.find<ScaleShiftStage>()) return {};  // its weights are no such numbers
  const auto product = IntegerProduct::of(plan, p, g.image_stride, kTiles);
  if (!product) return {};
  std::optional<Step> floats = whole_planes(plan, primitive);
  if (!floats) floats = rows(plan, primitive);
  Step step = std::move(*floats);
  product->join(step);
  const int scratch = plan.scratch("planes of quads", g.plane_floats());
  step.write({scratch});
  step.bind = [=, in_floats = step.bind](const Memory& memory) -> Kernel {
    return
        [=, run_floats = in_floats(memory), bound = IntegerProduct::Bound(*product, memory),
         tables = tables_of(g), b = memory.at(p.bias), from = memory[p.in[0]], to = memory[p.out],
         planes = memory[scratch], finish = finish_of(p, p.epilogue, memory)](const Run& run) {
          const uint32_t* quads = bound.pack(from, g.planes.size[0] * g.planes.size[1] * run.n);
          if (!quads) return run_floats(run);
          run_integers(g, *product, bound, *tables, quads, b, to, planes, run.n, finish);
        };
  };
  return step;
}

const Register<PrimitiveRecord> registered{{
    .name = "convolution",
    .summary = "sums over the taps of weights times the image shifted along the lanes",
    .payload = typeid(ConvolutionPayload),
    .variants = {{"turned", turned},
                 {"tap by tap", tap_by_tap},
                 {"integer tiles", integers<true>, true, kernels::has_integer_tiles},
                 {"integers", integers<false>, true, kernels::has_integer_dot},
                 {"depthwise", depthwise},
                 {"winograd", winograd},
                 {"winograd rows", winograd_rows},
                 {"output lanes", output_lanes},
                 {"whole planes", whole_planes},
                 {"rows", rows}},
    .reference = convolution_reference,
    .accumulates = true,
    .gradient = convolution_gradient,
    .generate = generate_convolution,
    .sample_by_sample = each_sample_alone,
    .stages = {StageKind::scale_shift, StageKind::add, StageKind::clamp},
    .takes =
        [](const Plan& plan, const Primitive& p, const FusedStage& stage) {
          if (plan.options.training || p.as<ConvolutionPayload>().transposed) return false;
          return kind_of(stage) != StageKind::scale_shift || has_plain_weights(plan, p);
        },
    .text =
        [](const Plan&, const Primitive& p) {
          const auto& own = p.as<ConvolutionPayload>();
          return fmt::format("{}{}", own.transposed ? " transposed" : "",
                             own.bias_cancels ? " bias without gradient" : "");
        },
    .multiply_adds = convolution_multiply_adds,
}};

}  // namespace
}  // namespace mase::engine::convolution_primitive
