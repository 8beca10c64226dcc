// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/convolution_products.h"

#include <algorithm>

#include "mase/engine/payloads.h"

namespace mase::engine::convolution_primitive {
namespace {

// One segment for each image row of the result; one for all where they are neighbours.
void add_segments(const Geometry& g, int64_t n, kernels::ShiftedShape& shape) {
  const Planes& planes = g.planes;
  shape.n = planes.result[1] * n;
  shape.segments = planes.result[0];
  shape.x_step = planes.pitch(n);
  shape.y_step = planes.result[1] * n;
  if (shape.x_step == shape.y_step) {
    shape.n *= shape.segments;
    shape.segments = 1;
  }
  shape.threads = g.threads;
}

}  // namespace

kernels::Finish finish_of(const Epilogue& epilogue, const Memory& memory) {
  const ClampStage limits = epilogue.limits();
  return {limits.low, limits.high, memory.at(epilogue.added())};
}

const float* planes_of(const Geometry& g, const float* image, int64_t group, float* scratch,
                       int64_t n) {
  const float* own = image + group * g.image_channels * g.image_stride;
  if (g.planes.direct) return own;
  g.planes.fill(own, g.image_stride, scratch, g.plane_stride, g.image_channels, n);
  return scratch;
}

bool may_be_transformed(const Plan& plan, const Primitive& p) {
  const auto& own = p.as<ConvolutionPayload>();
  return own.transforms && !own.transposed && !own.backward && !plan.at(p.in[0]).rounding &&
         !plan.at(p.weight).rounding;
}

Geometry geometry_of(const Plan& plan, const Primitive& p) {
  const auto& own = p.as<ConvolutionPayload>();
  return own.transposed ? geometry_of(plan, own.options, p.out, p.in[0])
                        : geometry_of(plan, own.options, p.in[0], p.out);
}

Geometry geometry_of(const Plan& plan, const Lowering::Convolution& options, int image,
                     int result) {
  const Shape &x = plan.at(image).shape, &y = plan.at(result).shape;
  const int64_t groups = options.groups;
  Geometry g{Planes(options.windows, x, y, options.padding_mode),
             groups,
             x[1] / groups,
             y[1] / groups,
             plan.row_stride(image),
             plan.row_stride(result),
             0,
             plan.options.threads};
  g.plane_stride = g.planes.direct ? g.image_stride
                                   : padded_lanes(g.planes.positions() * plan.options.batch_size);
  return g;
}

std::string detail_of(const Geometry& g) {
  return fmt::format("{} -> {}, {}x{}{}", g.image_channels * g.groups, g.result_channels * g.groups,
                     g.planes.kernel[0], g.planes.kernel[1],
                     g.groups > 1 ? fmt::format(", {} groups", g.groups) : "");
}

void Tables::make(const Geometry& g, int64_t samples) {
  if (n == samples) return;
  n = samples;
  size_t at = 0;
  for (int64_t c = 0; c < g.image_channels; ++c)
    for (int64_t ky = 0; ky < g.planes.kernel[0]; ++ky)
      for (int64_t kx = 0; kx < g.planes.kernel[1]; ++kx)
        image[at++] = c * g.plane_stride + g.planes.tap(ky, kx, n);
  for (int64_t o = 0; o < g.result_channels; ++o)
    result[static_cast<size_t>(o)] = o * g.result_stride;
}

std::shared_ptr<Tables> tables_of(const Geometry& g) {
  auto tables = std::make_shared<Tables>();
  tables->image.resize(static_cast<size_t>(g.terms()));
  tables->result.resize(static_cast<size_t>(g.result_channels));
  return tables;
}

kernels::ShiftedShape product_shape(const Geometry& g, const Tables& tables, int64_t terms,
                                    int64_t n) {
  kernels::ShiftedShape shape{};
  shape.out = g.result_channels;
  shape.in = shape.out_step = terms;
  shape.in_step = 1;
  shape.offsets = tables.image.data();
  shape.y_stride = g.result_stride;
  add_segments(g, n, shape);
  return shape;
}

namespace {

// In vectors; those that do not fill a tile cost more.
double vectors(int64_t lanes) {
  return static_cast<double>(lanes / 64 * 4) + 1.3 * static_cast<double>((lanes % 64 + 15) / 16);
}

double plane_vectors(const Planes& planes, int64_t n) {
  return vectors((planes.result[0] - 1) * planes.pitch(n) + planes.result[1] * n);
}

}  // namespace

bool worth_whole_planes(const Planes& planes, int64_t n) {
  const int64_t rows = planes.result[0];
  return rows > 1 &&
         1.1 * plane_vectors(planes, n) < static_cast<double>(rows) * vectors(planes.result[1] * n);
}

double row_vectors(const Planes& planes, int64_t n) {
  if (worth_whole_planes(planes, n)) return plane_vectors(planes, n);
  return static_cast<double>(planes.result[0]) * vectors(planes.result[1] * n);
}

void run_forward(const Geometry& g, Tables& tables, const float* w, const float* bias,
                 const float* image, float* result, float* scratch, int64_t n,
                 const kernels::Finish& finish, bool accumulate, float* wide) {
  tables.make(g, n);
  for (int64_t group = 0; group < g.groups; ++group) {
    const float* planes = planes_of(g, image, group, scratch, n);
    kernels::ShiftedShape shape = product_shape(g, tables, g.terms(), n);
    const float* own_bias = bias ? bias + group * shape.out : nullptr;
    const float* own_weights = w + group * shape.out * shape.in;
    float* to = result + group * shape.out * g.result_stride;
    const kernels::Finish own_finish = finish.at(group * shape.out * g.result_stride);
    if (!wide || shape.segments == 1) {
      kernels::shifted_linear(shape, own_weights, own_bias, planes, to, own_finish, accumulate);
      continue;
    }
    const int64_t rows = shape.segments, row = shape.n;
    shape.n = (rows - 1) * shape.x_step + row;
    if (!g.planes.direct) shape.n = (shape.n + spare_lanes - 1) / spare_lanes * spare_lanes;
    shape.segments = 1;
    shape.y_stride = g.wide_stride;
    kernels::shifted_linear(shape, own_weights, own_bias, planes, wide, {}, false);
    for (int64_t o = 0; o < shape.out; ++o)
      kernels::finish_rows(wide + o * g.wide_stride, shape.x_step, to + o * g.result_stride, row,
                           rows, row, own_finish.at(o * g.result_stride));
  }
}

void run_integers(const Geometry& g, const IntegerProduct& product,
                  const IntegerProduct::Bound& bound, Tables& tables, const uint32_t* quads,
                  const float* bias, float* result, float* scratch, int64_t n,
                  const kernels::Finish& finish) {
  Geometry packed = g;
  packed.image_channels = product.quads();
  packed.image_stride = product.stride();
  auto* planes = reinterpret_cast<uint32_t*>(scratch);
  if (g.planes.direct)
    packed.plane_stride = product.stride();
  else
    g.planes.fill(quads, product.stride(), planes, g.plane_stride, packed.image_channels, n,
                  product.zero());
  tables.make(packed, n);
  bound.run(product_shape(g, tables, product.terms(), n), bias, g.planes.direct ? quads : planes,
            result, finish);
}

void run_transposed(const Geometry& g, Tables& tables, const float* w, const float* bias,
                    const float* result, float* image, float* scratch, float* taps, int64_t n,
                    bool accumulate) {
  tables.make(g, n);
  const int64_t count = g.planes.taps(), in = g.image_channels, out = g.result_channels;
  const int64_t plane_lanes = g.planes.positions() * n;
  for (int64_t group = 0; group < g.groups; ++group) {
    const float* own = w + group * out * g.terms();
    for (int64_t o = 0; o < out; ++o)
      for (int64_t c = 0; c < in; ++c)
        for (int64_t t = 0; t < count; ++t)
          taps[(t * in + c) * out + o] = own[o * g.terms() + c * count + t];
    float* target = image + group * in * g.image_stride;
    float* planes = g.planes.direct ? target : scratch;
    if (!g.planes.direct || !accumulate)
      for (int64_t c = 0; c < in; ++c) std::fill_n(planes + c * g.plane_stride, plane_lanes, 0.0f);
    kernels::ShiftedShape shape{};
    shape.out = in;
    shape.in = out;
    shape.out_step = out;
    shape.in_step = 1;
    shape.offsets = tables.result.data();
    shape.y_stride = g.plane_stride;
    add_segments(g, n, shape);
    std::swap(shape.x_step, shape.y_step);
    for (int64_t ky = 0; ky < g.planes.kernel[0]; ++ky)
      for (int64_t kx = 0; kx < g.planes.kernel[1]; ++kx)
        kernels::shifted_linear(shape, taps + (ky * g.planes.kernel[1] + kx) * in * out, nullptr,
                                result + group * out * g.result_stride,
                                planes + g.planes.tap(ky, kx, n), {}, true);
    if (!g.planes.direct)
      g.planes.send_back(planes, g.plane_stride, target, g.image_stride, in, n, accumulate);
    for (int64_t c = 0; bias && c < in; ++c) {
      const int64_t lanes = g.planes.size[0] * g.planes.size[1] * n;
      for (int64_t l = 0; l < lanes; ++l) target[c * g.image_stride + l] += bias[group * in + c];
    }
  }
}

void run_weights(const Geometry& g, Tables& tables, const float* result, const float* image,
                 float* scratch, float* dw, int64_t n, bool accumulate) {
  tables.make(g, n);
  for (int64_t group = 0; group < g.groups; ++group) {
    const float* planes = planes_of(g, image, group, scratch, n);
    const kernels::ShiftedShape shape = product_shape(g, tables, g.terms(), n);
    kernels::shifted_gradient(shape, result + group * shape.out * g.result_stride, planes,
                              dw + group * shape.out * shape.in, accumulate);
  }
}

}  // namespace mase::engine::convolution_primitive
