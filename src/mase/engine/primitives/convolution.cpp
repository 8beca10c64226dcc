// SPDX-License-Identifier: Apache-2.0
// convolution: a sum over the taps of weights times the image shifted along the lanes; the dense
// kernel with a table of where each channel and tap begins. Its gradients are the same sums the
// other way round, and a transposed convolution is one of them as an operation.
#include "mase/engine/primitives/convolution.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/shifted.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/primitives/fold.h"
#include "mase/engine/primitives/integer.h"
#include "mase/engine/primitives/planes.h"
#include "mase/engine/primitives/quantize.h"
#include "mase/engine/primitives/winograd.h"

namespace mase::engine::convolution_primitive {
namespace {

// Whole planes are rounded up to whole vectors; behind the last one there is room for that.
constexpr int64_t spare_lanes = 16;

// The convolution from `image` (C channels) to `result` (O channels), whatever way it is run.
struct Geometry {
  Planes planes;
  int64_t groups, image_channels, result_channels;  // of one group
  int64_t image_stride, result_stride, plane_stride;
  int threads;
  int64_t wide_stride = 0;  // of results as wide as the planes; 0: they are written row by row

  int64_t terms() const { return image_channels * planes.taps(); }
  int64_t plane_floats() const {
    return planes.direct ? 0 : image_channels * plane_stride + spare_lanes;
  }
};

Geometry geometry_of(const Plan& plan, const Primitive& p) {
  const auto& own = p.as<ConvolutionPayload>();
  const int image = own.transposed ? p.out : p.in[0], result = own.transposed ? p.in[0] : p.out;
  const Shape &x = plan.at(image).shape, &y = plan.at(result).shape;
  const int64_t groups = own.options.groups;
  Geometry g{Planes(own.options.windows, x, y, own.options.padding_mode),
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

// The tables of a batch of n samples, made when n changes.
struct Tables {
  int64_t n = -1;
  std::vector<int64_t> image;   // of each channel and tap: where it begins in the planes
  std::vector<int64_t> result;  // of each channel of the result

  void make(const Geometry& g, int64_t samples) {
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
};

std::shared_ptr<Tables> tables_of(const Geometry& g) {
  auto tables = std::make_shared<Tables>();
  tables->image.resize(static_cast<size_t>(g.terms()));
  tables->result.resize(static_cast<size_t>(g.result_channels));
  return tables;
}

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

// Rows of few lanes, as those of a small image of one sample, leave vectors half empty. Then all
// rows are computed as one, the places between them too, and what is wanted is copied out. Costs
// are in vectors of lanes; those that do not fill a tile cost more.
bool worth_whole_planes(const Planes& planes, int64_t n) {
  const auto cost = [](int64_t lanes) {
    return static_cast<double>(lanes / 64 * 4) + 1.3 * static_cast<double>((lanes % 64 + 15) / 16);
  };
  const int64_t rows = planes.result[0], row = planes.result[1] * n;
  return rows > 1 &&
         1.1 * cost((rows - 1) * planes.pitch(n) + row) < static_cast<double>(rows) * cost(row);
}

const float* planes_of(const Geometry& g, const float* image, int64_t group, float* scratch,
                       int64_t n) {
  const float* own = image + group * g.image_channels * g.image_stride;
  if (g.planes.direct) return own;
  g.planes.fill(own, g.image_stride, scratch, g.plane_stride, g.image_channels, n);
  return scratch;
}

// result = w * image
void run_forward(const Geometry& g, Tables& tables, const float* w, const float* bias,
                 const float* image, float* result, float* scratch, int64_t n,
                 const kernels::Finish& finish, bool accumulate, float* wide = nullptr) {
  tables.make(g, n);
  for (int64_t group = 0; group < g.groups; ++group) {
    const float* planes = planes_of(g, image, group, scratch, n);
    kernels::ShiftedShape shape{};
    shape.out = g.result_channels;
    shape.in = g.terms();
    shape.out_step = g.terms();
    shape.in_step = 1;
    shape.offsets = tables.image.data();
    shape.y_stride = g.result_stride;
    add_segments(g, n, shape);
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

// The same with integers, which stand in the planes four channels to a word; one group.
void run_integers(const Geometry& g, const IntegerProduct& product,
                  const IntegerProduct::Bound& bound, Tables& tables, const float* quads,
                  const float* bias, float* result, float* scratch, int64_t n,
                  const kernels::Finish& finish) {
  Geometry packed = g;
  packed.image_channels = product.quads();
  packed.image_stride = product.stride();
  if (g.planes.direct)
    packed.plane_stride = product.stride();
  else
    g.planes.fill(quads, product.stride(), scratch, g.plane_stride, packed.image_channels, n,
                  product.zero());
  tables.make(packed, n);
  kernels::ShiftedShape shape{};
  shape.out = g.result_channels;
  shape.in = product.terms();
  shape.out_step = product.terms();
  shape.in_step = 1;
  shape.offsets = tables.image.data();
  shape.y_stride = g.result_stride;
  add_segments(g, n, shape);
  bound.run(shape, bias, g.planes.direct ? quads : scratch, result, finish);
}

// image (+)= w^T * result, tap by tap; `taps` holds the weights of one tap after the other.
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

// dw = result * image^T
void run_weights(const Geometry& g, Tables& tables, const float* result, const float* image,
                 float* scratch, float* dw, int64_t n, bool accumulate) {
  tables.make(g, n);
  for (int64_t group = 0; group < g.groups; ++group) {
    const float* planes = planes_of(g, image, group, scratch, n);
    kernels::ShiftedShape shape{};
    shape.out = g.result_channels;
    shape.in = g.terms();
    shape.out_step = g.terms();
    shape.in_step = 1;
    shape.offsets = tables.image.data();
    shape.y_stride = g.result_stride;
    add_segments(g, n, shape);
    kernels::shifted_gradient(shape, result + group * shape.out * g.result_stride, planes,
                              dw + group * shape.out * shape.in, accumulate);
  }
}

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

std::optional<Winograd> reversed_winograd(Plan& plan, const Primitive& p, const Geometry& g) {
  const auto& own = p.as<ConvolutionPayload>();
  if (own.transposed || own.backward || is_rounded(plan, p.weight)) return {};
  return Winograd::of(
      plan,
      {*reversed_windows(own.options.windows), PaddingMode::zeros, g.groups, plan.at(p.out).shape,
       plan.at(p.in[0]).shape, g.result_stride, g.image_stride, g.threads},
      false);
}

// The gradient with respect to the image, or a transposed convolution, whichever way it is run.
struct ToImage {
  Geometry forward;
  std::optional<Geometry> back;
  std::optional<Winograd> winograd;
  int scratch = -1, taps = -1;

  ToImage(Plan& plan, const Primitive& p, const Geometry& g, Step& step)
      : forward(g), back(reversed(plan, p, g)) {
    if (back) winograd = reversed_winograd(plan, p, g);
    if (winograd)
      winograd->join(step);
    else
      scratch = plan.scratch("planes", (back ? *back : forward).plane_floats());
    taps = plan.scratch("taps", element_count(plan.at(p.weight).shape));
    step.write({scratch, taps});
  }

  Kernel kernel(const float* w, const float* bias, const float* result, float* image,
                const Memory& memory, bool accumulate) const {
    const auto tables = tables_of(back ? *back : forward);
    std::optional<Winograd::Bound> tiles;
    if (winograd) tiles.emplace(*winograd, memory);
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
      run_forward(*own.back, *tables, packed, bias, result, image, planes, run.n, {}, accumulate);
    };
  }
};

// Sums of rounded operands have to stay what they are: exact where the format says so.
std::optional<Winograd> winograd_of(Plan& plan, const Primitive& p, bool gradient) {
  const auto& own = p.as<ConvolutionPayload>();
  if (own.transposed || own.backward || is_rounded(plan, p.in[0]) || is_rounded(plan, p.weight))
    return {};
  return Winograd::of(plan,
                      {own.options.windows, own.options.padding_mode, own.options.groups,
                       plan.at(p.in[0]).shape, plan.at(p.out).shape, plan.row_stride(p.in[0]),
                       plan.row_stride(p.out), plan.options.threads},
                      gradient);
}

std::string detail_of(const Geometry& g) {
  return fmt::format("{} -> {}, {}x{}{}", g.image_channels * g.groups, g.result_channels * g.groups,
                     g.planes.kernel[0], g.planes.kernel[1],
                     g.groups > 1 ? fmt::format(", {} groups", g.groups) : "");
}

// The weights and bias that are multiplied with: those of the layer, or with a batch norm in them.
struct Factors {
  int weight, bias;
};

Factors factors_of(Plan& plan, const Primitive& p) {
  const auto& own = p.as<ConvolutionPayload>();
  if (own.norm < 0) return {p.weight, p.bias};
  plan.prepare.push_back(prepare_folded(plan, p, own.norm, own.folded_weight, own.folded_bias));
  return {own.folded_weight, own.folded_bias};
}

Step step_of(const Primitive& p, const Geometry& g, const Factors& factors) {
  const auto& own = p.as<ConvolutionPayload>();
  Step step{own.transposed ? "transposed_convolution" : "convolution",
            detail_of(g),
            {p.in[0], factors.weight},
            {p.out}};
  if (own.add >= 0) step.kernel += "+add";
  if (own.low == 0 && std::isinf(own.high))
    step.kernel += "+relu";
  else if (std::isfinite(own.low) || std::isfinite(own.high))
    step.kernel += "+clamp";
  step.read({factors.bias, own.add});
  return step;
}

kernels::Finish finish_of(const Primitive& p, const Memory& memory) {
  const auto& own = p.as<ConvolutionPayload>();
  return {own.low, own.high, memory.at(own.add)};
}

std::optional<Step> to_image(Plan& plan, Primitive& p) {
  if (!p.as<ConvolutionPayload>().transposed) return {};
  const Factors factors = factors_of(plan, p);
  const Geometry g = geometry_of(plan, p);
  Step step = step_of(p, g, factors);
  const ToImage image(plan, p, g, step);
  step.bind = [=, in = p.in[0], out = p.out](const Memory& memory) {
    return image.kernel(memory[factors.weight], memory.at(factors.bias), memory[in], memory[out],
                        memory, false);
  };
  return step;
}

std::optional<Step> winograd(Plan& plan, Primitive& primitive) {
  const auto tiles = winograd_of(plan, primitive, false);
  if (!tiles) return {};
  const Primitive p = primitive;
  const Factors factors = factors_of(plan, p);
  Step step = step_of(p, geometry_of(plan, p), factors);
  tiles->join(step);
  const bool fixed = !plan.options.training;
  if (fixed) plan.prepare.push_back(tiles->prepare(factors.weight));
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, product = Winograd::Bound(*tiles, memory), w = memory[factors.weight],
            b = memory.at(factors.bias), from = memory[p.in[0]], to = memory[p.out],
            finish = finish_of(p, memory)](const Run& run) {
      if (!fixed) product.transform_weights(w);
      product.forward(from, b, to, finish, false, run.n);
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
            finish = finish_of(p, memory)](const Run& run) {
      run_forward(g, *tables, w, b, from, to, planes, run.n, finish, false, rows);
    };
  };
  return step;
}

std::optional<Step> whole_planes(Plan& plan, Primitive& p) {
  Geometry g = geometry_of(plan, p);
  const int64_t batch = plan.options.batch_size;
  if (p.as<ConvolutionPayload>().transposed || !worth_whole_planes(g.planes, batch)) return {};
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
  const auto& own = p.as<ConvolutionPayload>();
  const Geometry g = geometry_of(plan, p);
  if (g.groups != 1 || own.norm >= 0 || own.transposed) return {};
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
         planes = memory[scratch], finish = finish_of(p, memory)](const Run& run) {
          const float* quads = bound.pack(from, g.planes.size[0] * g.planes.size[1] * run.n);
          if (!quads) return run_floats(run);
          run_integers(g, *product, bound, *tables, quads, b, to, planes, run.n, finish);
        };
  };
  return step;
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const auto& own = p.as<ConvolutionPayload>();
  const Geometry g = geometry_of(plan, p);
  const bool transposed = own.transposed;
  const int bias = own.bias_cancels ? -1 : p.bias;
  // The values of the products: as the forward pass had them, or rounded for the backward pass.
  int x = p.in[0], weight = p.weight;
  if (own.backward) {
    const auto rounded = [&](int tensor, const char* operand, uint64_t index) {
      return rounded_for_backward(backward, p, own.backward->find_backward(operand), tensor, index);
    };
    gradient = rounded(gradient, "output_grad", 0);
    x = rounded(p.params.at(0).second, "data_in", 1);
    weight = rounded(unrounded(plan, weight), "weight", 2);
  }
  if (backward.wanted(p.weight) || backward.wanted(bias)) {
    const Target w = backward.target(p.weight), b = backward.target(bias);
    Step step{"convolution_weight_gradient", detail_of(g), {x, gradient}, {}};
    step.write({w.tensor, b.tensor});
    const auto winograd = w.tensor >= 0 ? winograd_of(plan, p, true) : std::nullopt;
    if (winograd) winograd->join(step);
    const int scratch = winograd ? -1 : plan.scratch("planes", g.plane_floats());
    step.write({scratch});
    const int64_t channels = plan.at(p.out).rows(), stride = plan.row_stride(p.out);
    const int out = p.out;
    step.bind = [=, &plan](const Memory& memory) -> Kernel {
      const auto tables = tables_of(g);
      std::optional<Winograd::Bound> tiles;
      if (winograd) tiles.emplace(*winograd, memory);
      return [=, &plan, from = memory[x], up = memory[gradient], dw = memory.at(w.tensor),
              db = memory.at(b.tensor), planes = memory.at(scratch)](const Run& run) {
        if (tiles)
          tiles->weights_gradient(from, up, dw, w.accumulate, run.n);
        else if (dw && transposed)
          run_weights(g, *tables, from, up, planes, dw, run.n, w.accumulate);
        else if (dw)
          run_weights(g, *tables, up, from, planes, dw, run.n, w.accumulate);
        for (int64_t c = 0; db && c < channels; ++c) {
          const auto sum = static_cast<float>(kernels::sum(up + c * stride, plan.lanes(out, run)));
          db[c] = b.accumulate ? db[c] + sum : sum;
        }
      };
    };
    backward.push(std::move(step));
  }
  const Target t = backward.target(p.in[0]);
  if (t.tensor < 0) return;
  Step step{"convolution_input_gradient", detail_of(g), {weight, gradient}, {t.tensor}};
  if (!transposed) {
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

const Register<PrimitiveRecord> registered{{
    .name = "convolution",
    .summary = "sums over the taps of weights times the image shifted along the lanes",
    .payload = typeid(ConvolutionPayload),
    .variants = {{"transposed", to_image},
                 {"integer tiles", integers<true>, true},
                 {"integers", integers<false>, true},
                 {"winograd", winograd},
                 {"whole planes", whole_planes},
                 {"rows", rows}},
    .reference = convolution_reference,
    .gradient = gradient,
    .generate = generate_convolution,
    .multiply_adds = convolution_multiply_adds,
}};

}  // namespace
}  // namespace mase::engine::convolution_primitive
