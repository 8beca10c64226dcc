// SPDX-License-Identifier: Apache-2.0
// Convolutions by plain loops, and drawn ones.
#include <algorithm>

#include "mase/engine/payloads.h"
#include "mase/engine/primitives/convolution.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"
#include "mase/ops/windows.h"

namespace mase::engine {
void each_product(
    const Lowering::Convolution& options, const Shape& weights, const Shape& image,
    const Shape& result,
    const std::function<void(const Shape& at, const Shape& tap, const Shape& place)>& visit) {
  const Windows& windows = options.windows;
  const int64_t outs = result[1] / options.groups, ins = image[1] / options.groups;
  Shape one_output = weights;
  one_output[0] = 1;
  each_index(result, [&](const Shape& at) {
    const int64_t group = at[1] / outs;
    each_index(one_output, [&](Shape tap) {
      tap[0] = at[1];
      Shape place = {at[0], group * ins + tap[1]};
      for (size_t i = 0; i < windows.kernel.size(); ++i)
        place.push_back(padded_source(at[i + 2] * windows.stride[i] - windows.padding_before[i] +
                                          tap[i + 2] * windows.dilation[i],
                                      image[i + 2], options.padding_mode));
      if (std::find(place.begin(), place.end(), -1) == place.end()) visit(at, tap, place);
    });
  });
}

void convolution_reference(Reference& call) {
  const Primitive& p = call.primitive;
  const auto& own = p.as<ConvolutionPayload>();
  Array& y = call.out;
  const Array &x = call.in[0], &w = call.weight;
  if (p.bias >= 0)
    each_index(y.shape, [&](const Shape& at) {
      value_at(y, at) = call.bias.data[static_cast<size_t>(at[1])];
    });
  // The image has the positions of x, or of the result where the convolution is transposed.
  each_product(own.options, w.shape, own.transposed ? y.shape : x.shape,
               own.transposed ? x.shape : y.shape,
               [&](const Shape& at, const Shape& tap, const Shape& place) {
                 value_at(y, own.transposed ? place : at) +=
                     value_at(x, own.transposed ? at : place) * value_at(w, tap);
               });
}

Slot generate_convolution(Trial& trial) {
  // Channels enough for tiles of 3x3 taps; each channel by itself; five taps, no stride; small
  // images of few samples; transposed; any sizes.
  enum { many, depthwise, wide, small, turned, any };
  const int64_t kind = trial.kind(6);
  const bool plain = kind == many && trial.coin(true);  // 3x3, no stride
  const bool steady = plain || kind == wide || kind == small;
  trial.batch(kind == wide ? 64 : kind == small ? 1 : 8, kind == small ? 2 : 40);
  const size_t dims = steady || trial.coin(true) ? 2 : 1;
  const int64_t groups = kind == depthwise         ? trial.size(2, 9, 144)
                         : !steady && trial.coin() ? trial.size(2, 3, 1)
                                                   : 1;
  const auto channels = [&](int64_t most, int64_t of_wide, int64_t of_wide_large) {
    if (kind == depthwise) return int64_t{1};
    if (kind == wide) return trial.size(of_wide, of_wide + 3, of_wide_large);
    return kind == many ? trial.size(16, 20, 64) : trial.size(1, most, kind == small ? 6 : 64);
  };
  const int64_t ins = channels(5, 2, 6);
  const int64_t outs = kind == small ? 16 * trial.size(1, 2, 1) : channels(9, 6, 16);
  const bool transposed = kind == turned || (!steady && trial.coin());
  Lowering::Convolution options;
  options.groups = groups;
  const PaddingMode modes[] = {PaddingMode::zeros, PaddingMode::reflect, PaddingMode::replicate,
                               PaddingMode::circular};
  if (!transposed && trial.coin()) options.padding_mode = modes[trial.below(4)];
  Shape image = {groups * ins}, positions, weight = {groups * outs, ins};
  for (size_t i = 0; i < dims; ++i) {
    const int64_t kernel = plain ? 3
                           : kind == wide
                               ? 5
                               : trial.size(1, kind == any ? 4 : 5, kind == small ? 5 : 3);
    const int64_t dilation = steady ? 1 : trial.size(1, 2, 1);
    const int64_t stride = steady ? 1 : trial.size(1, 3, 1), reach = dilation * (kernel - 1) + 1;
    const int64_t padding = trial.below(3, 1);
    image.push_back(trial.size(std::max(reach, padding + 1), reach + 9,
                               kind == wide || kind == small ? 14 : 32));
    positions.push_back((image.back() + 2 * padding - reach) / stride + 1);
    weight.push_back(kernel);
    options.windows.kernel.push_back(kernel);
    options.windows.stride.push_back(stride);
    options.windows.dilation.push_back(dilation);
    options.windows.padding_before.push_back(padding);
    options.windows.padding_after.push_back(padding);
  }
  std::optional<Slot> bias;
  Slot w = trial.parameter(weight);
  if (transposed) {
    Shape result = {groups * outs};
    result.insert(result.end(), positions.begin(), positions.end());
    if (trial.coin()) bias = trial.parameter({groups * ins});
    return trial.to().transposed_convolution(trial.activation(result), w, bias, options,
                                             Shape(image.begin() + 1, image.end()));
  }
  Slot x = trial.activation(image);
  if (trial.coin(true)) bias = trial.parameter({groups * outs});
  if (kind != wide && trial.few_bits()) {  // numbers of few bits: products of integers
    w = trial.rounded(w, 6, 4);
    x = trial.rounded(x, 8, 5);
    if (bias) bias = trial.rounded(*bias, 8, 5);
  }
  return trial.to().convolution(x, w, bias, options);
}

double convolution_multiply_adds(const Plan& plan, const Primitive& p) {
  const int result = p.as<ConvolutionPayload>().transposed ? p.in[0] : p.out;
  const Shape& w = plan.at(p.weight).shape;
  return static_cast<double>(element_count(plan.at(result).shape) * (element_count(w) / w[0]));
}

}  // namespace mase::engine
