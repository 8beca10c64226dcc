// SPDX-License-Identifier: Apache-2.0
// Convolutions over one and two dimensions: at every position the sums of its window, with stride,
// padding, dilation and groups as the engine reads them.
#include <algorithm>
#include <map>

#include "mase/hardware/lower/lower_products.h"
#include "mase/hardware/lower/lowering_probe.h"
#include "mase/ops/windows.h"

namespace mase::convolution_lowering {
namespace {

// Sees the options of the one convolution that the op is.
class SeesConvolution final : public LoweringProbe {
 public:
  explicit SeesConvolution(const Shape& x) : x_(x) {}
  Shape shape(Slot slot) const override { return slot == 0 ? x_ : Shape{}; }
  std::optional<Slot> parameter(const std::string&) override { return 1; }
  Slot convolution(Slot, Slot, std::optional<Slot>, const Convolution& options) override {
    seen = options;
    return 2;
  }
  std::optional<Convolution> seen;

 private:
  Shape x_;
};

std::optional<std::vector<IntegerId>> lower(const IntegerCall& call) {
  const LayerParameters layer = layer_parameters(call);
  SeesConvolution probe(call.shapes[0]);
  call.call.op->lower(probe, call.call.attributes, {0});
  MASE_CHECK(probe.seen.has_value(), "{} is no convolution", call.call.op->name);
  const Lowering::Convolution& options = *probe.seen;
  const WindowPlane plane(options.windows, call.shapes[0], call.shape, options.padding_mode);
  const std::vector<IntegerId>& inputs = call.inputs[0];
  const auto whole = [](int64_t number) { return static_cast<size_t>(number); };
  const size_t groups = whole(options.groups), out = whole(layer.shape[0]) / groups,
               in = whole(layer.shape[1]), taps = whole(plane.taps()),
               positions = whole(plane.positions()), results = whole(plane.results());
  // Of every position: which tap reads which position of x.
  std::vector<std::vector<std::pair<size_t, size_t>>> windows(results);
  plane.each([&](size_t at, size_t tap, size_t from) { windows[at].emplace_back(tap, from); });
  int x_frac = no_least_frac;
  for (const IntegerId id : inputs) x_frac = std::max(x_frac, call.builder.at(id).frac);
  LayerSums sums(call);
  std::vector<IntegerId> result(groups * out * results);
  std::vector<SumTerm> terms;
  std::map<IntegerId, double> merged;  // padding that repeats positions reads some twice
  for (size_t group = 0; group < groups; ++group)
    for (size_t o = 0; o < out; ++o) {
      const size_t channel = group * out + o;
      const double* const weights = layer.weight.data() + channel * in * taps;
      // Windows at the border have fewer terms and the same binary point.
      int frac = no_least_frac;
      for (size_t k = 0; k < in * taps; ++k)
        if (weights[k] != 0)
          frac = std::max(frac, dyadic(weights[k], call.node.name).frac + x_frac);
      for (size_t at = 0; at < results; ++at) {
        terms.clear();
        merged.clear();
        for (size_t c = 0; c < in; ++c)
          for (const auto& [tap, from] : windows[at]) {
            const IntegerId id = inputs[(group * in + c) * positions + from];
            if (options.padding_mode == PaddingMode::zeros)
              terms.push_back({id, weights[c * taps + tap]});
            else
              merged[id] += weights[c * taps + tap];
          }
        for (const auto& [id, weight] : merged) terms.push_back({id, weight});
        result[channel * results + at] = sums.sum(terms, layer.bias_of(channel), frac);
      }
    }
  sums.note();
  const int64_t channels = static_cast<int64_t>(groups * out);
  std::optional<IntegerGraph::Sliding> sliding;
  if (options.padding_mode == PaddingMode::zeros)
    sliding = sliding_windows(options.windows, call.shapes[0], call.shape);
  call.builder.note_linear(by_position(inputs, static_cast<int64_t>(groups * in)),
                           by_position(result, channels), sliding);
  return result;
}

const Register<IntegerLowering> one{{
    .name = "conv1d",
    .summary = "sums of products over windows of a sequence",
    .lower = lower,
}};
const Register<IntegerLowering> two{{
    .name = "conv2d",
    .summary = "sums of products over windows of a plane",
    .lower = lower,
}};

}  // namespace
}  // namespace mase::convolution_lowering
