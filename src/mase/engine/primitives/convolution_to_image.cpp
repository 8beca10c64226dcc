// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/convolution_to_image.h"

#include "mase/engine/payloads.h"
#include "mase/engine/primitives/quantize.h"

namespace mase::engine::convolution_primitive {
namespace {

std::optional<Windows> reversed_windows(Windows windows) {
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    const int64_t padding =
        windows.dilation[i] * (windows.kernel[i] - 1) - windows.padding_before[i];
    if (padding < 0) return {};
    windows.padding_before[i] = padding;
  }
  return windows;
}

// With a stride of 1 the gradient with respect to the image is a convolution too, of the padded
// result with the taps in reverse: sums stay in registers, where the sum tap by tap goes through
// memory. Nothing if it does not apply.
std::optional<Geometry> reversed(const Plan& plan, const Primitive& p, const Geometry& g) {
  const auto& own = p.as<ConvolutionPayload>();
  const Planes& planes = g.planes;
  if (planes.mode != PaddingMode::zeros || planes.stride[0] != 1 || planes.stride[1] != 1)
    return {};
  const std::optional<Windows> windows = reversed_windows(own.options.windows);
  if (!windows) return {};
  const int image = own.transposed ? p.out : p.in[0], result = own.transposed ? p.in[0] : p.out;
  Geometry back{Planes(*windows, plan.at(result).shape, plan.at(image).shape, PaddingMode::zeros),
                g.groups,
                g.result_channels,
                g.image_channels,
                g.result_stride,
                g.image_stride,
                0,
                g.threads};
  back.plane_stride = back.planes.direct
                          ? back.image_stride
                          : padded_lanes(back.planes.positions() * plan.options.batch_size);
  return back;
}

bool reverse_may_be_transformed(const Plan& plan, const Primitive& p) {
  const auto& own = p.as<ConvolutionPayload>();
  return !own.transposed && !own.backward && !plan.at(p.weight).rounding;
}

std::optional<Winograd> reversed_winograd(Plan& plan, const Primitive& p, const Geometry& g) {
  const auto& own = p.as<ConvolutionPayload>();
  if (!reverse_may_be_transformed(plan, p)) return {};
  return Winograd::of(
      plan,
      {*reversed_windows(own.options.windows), PaddingMode::zeros, g.groups, plan.at(p.out).shape,
       plan.at(p.in[0]).shape, g.result_stride, g.image_stride, g.threads},
      false);
}

}  // namespace

bool may_be_transformed(const Plan& plan, const Primitive& p) {
  const auto& own = p.as<ConvolutionPayload>();
  return !own.transposed && !own.backward && !plan.at(p.in[0]).rounding &&
         !plan.at(p.weight).rounding;
}

std::optional<Winograd> winograd_of(Plan& plan, const Primitive& p, bool gradient) {
  if (!may_be_transformed(plan, p)) return {};
  const auto& own = p.as<ConvolutionPayload>();
  return Winograd::of(plan,
                      {own.options.windows, own.options.padding_mode, own.options.groups,
                       plan.at(p.in[0]).shape, plan.at(p.out).shape, plan.row_stride(p.in[0]),
                       plan.row_stride(p.out), plan.options.threads},
                      gradient);
}

ToImage::ToImage(Plan& plan, const Primitive& p, const Geometry& g, Step& step)
    : forward(g), back(reversed(plan, p, g)) {
  if (back) {
    winograd = reversed_winograd(plan, p, g);
    depthwise = Depthwise::of(*back, plan.options.batch_size);
    if (!winograd && !depthwise && reverse_may_be_transformed(plan, p))
      rows = RowWinograd::of(plan, *back);
  }
  if (winograd)
    winograd->join(step);
  else if (rows)
    rows->join(step);
  else if (depthwise)
    depthwise->join(step);
  else
    scratch = plan.scratch("planes", (back ? *back : forward).plane_floats());
  taps = plan.scratch("taps", element_count(plan.at(p.weight).shape));
  step.write({scratch, taps});
}

Kernel ToImage::kernel(const float* w, const float* bias, const float* result, float* image,
                       const Memory& memory, bool accumulate) const {
  const auto tables = tables_of(back ? *back : forward);
  std::optional<Winograd::Bound> tiles;
  if (winograd) tiles.emplace(*winograd, memory);
  std::optional<RowWinograd::Bound> row_tiles;
  if (rows) row_tiles.emplace(*rows, memory);
  return [=, own = *this, planes = memory.at(scratch), packed = memory[taps]](const Run& run) {
    if (!own.back) {
      run_transposed(own.forward, *tables, w, bias, result, image, planes, packed, run.n,
                     accumulate);
      return;
    }
    const Geometry& g = own.forward;
    const int64_t count = g.planes.taps(), in = g.image_channels, out = g.result_channels;
    for (int64_t group = 0; group < g.groups; ++group)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t c = 0; c < in; ++c)
          for (int64_t t = 0; t < count; ++t)
            packed[((group * in + c) * out + o) * count + count - 1 - t] =
                w[((group * out + o) * in + c) * count + t];
    if (tiles) {
      tiles->transform_weights(packed);
      tiles->forward(result, bias, image, {}, accumulate, run.n);
      return;
    }
    const kernels::Finish finish{.add = accumulate ? image : nullptr};
    if (row_tiles) {
      row_tiles->transform_weights(packed);
      row_tiles->forward(result, bias, image, finish, run.n);
      return;
    }
    if (own.depthwise) {
      own.depthwise->forward(packed, bias, result, image, finish, run.n);
      return;
    }
    run_forward(*own.back, *tables, packed, bias, result, image, planes, run.n, {}, accumulate);
  };
}

}  // namespace mase::engine::convolution_primitive
