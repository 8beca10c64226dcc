// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/lower/lower_products.h"

#include <algorithm>
#include <cmath>

#include "mase/formats/format.h"

namespace mase {
namespace {

// A key that gives an operand the format of its layer.
std::string first_key(const Module& module) {
  const Value& config = module.quantization.config;
  const FormatRecord* const format =
      config.is_dict() && config["name"].is_string()
          ? Registry<FormatRecord>::instance().find(config["name"].as_string())
          : nullptr;
  return format && !format->schema.fields.empty() ? format->schema.fields[0].name : "width";
}

std::optional<Tensor> rounded_parameter(const IntegerCall& call, const char* name) {
  const Tensor* tensor = call.call.module->find(name);
  if (!tensor) return {};
  const QuantizerPtr format = call.format(name);
  if (!format)
    call.refuse(fmt::format("its {} is not rounded to a number format", name),
                fmt::format("give {}_{} in its quantisation", name, first_key(*call.call.module)));
  return quantize(*format, *tensor);
}

// A scale that is no power of two makes numbers of 24 significant bits, which no sum in single
// precision adds exactly.
void check_constant(const IntegerCall& call, const char* what, double value) {
  const Dyadic number = dyadic(value, call.node.name);
  if (std::abs(number.mantissa) >= int64_t{1} << 16)
    call.refuse(fmt::format("its {} {} has more than 16 significant bits", what, value),
                "use a format whose scale is a power of two (integer, minifloat, block formats)");
}

}  // namespace

LayerParameters layer_parameters(const IntegerCall& call) {
  if (!call.call.module)
    call.refuse("its weights are values of the network, not a layer's own",
                "use a module: hardware has layers with constant weights");
  const Tensor weight = *rounded_parameter(call, "weight");
  const std::optional<Tensor> bias = rounded_parameter(call, "bias");
  LayerParameters result{weight.shape(), {}, {}};
  for (int64_t i = 0; i < weight.numel(); ++i) {
    result.weight.push_back(weight.item(i));
    check_constant(call, "weight", result.weight.back());
  }
  for (int64_t i = 0; bias && i < bias->numel(); ++i) {
    result.bias.push_back(bias->item(i));
    check_constant(call, "bias", result.bias.back());
  }
  return result;
}

IntegerId LayerSums::sum(const std::vector<SumTerm>& terms, double bias, int least_frac) {
  const IntegerId id = lower_sum(call_.builder, terms, bias, call_.node.name, least_frac);
  const int frac = call_.builder.at(id).frac;
  double largest = std::abs(std::ldexp(bias, frac));
  for (const SumTerm& term : terms) {
    const IntegerNode& x = call_.builder.at(term.value);
    const double most = std::max(std::abs(static_cast<double>(x.range.low)),
                                 std::abs(static_cast<double>(x.range.high)));
    largest += most * std::abs(std::ldexp(term.weight, frac - x.frac));
  }
  largest_ = std::max(largest_, largest);
  return id;
}

void LayerSums::note() const {
  const int bits = static_cast<int>(std::ceil(std::log2(largest_)));
  call_.network.float32.push_back({call_.node.name, bits <= 24, bits});
}

IntegerGraph::Sliding sliding_windows(const Windows& windows, const Shape& x, const Shape& y) {
  IntegerGraph::Sliding result;
  result.channels = x[1];
  result.results = y[1];
  const size_t dims = x.size() - 2, flat = 2 - dims;  // one dimension lies across
  for (size_t i = 0; i < 2; ++i) {
    const bool real = i >= flat;
    const size_t from = i - (real ? flat : 0);
    result.size[i] = real ? x[2 + from] : 1;
    result.kernel[i] = real ? windows.kernel[from] : 1;
    result.stride[i] = real ? windows.stride[from] : 1;
    result.before[i] = real ? windows.padding_before[from] : 0;
    result.after[i] = real ? windows.padding_after[from] : 0;
    result.dilation[i] = real ? windows.dilation[from] : 1;
    result.result[i] = real ? y[2 + from] : 1;
  }
  return result;
}

std::vector<IntegerId> by_position(const std::vector<IntegerId>& features, int64_t channels) {
  const size_t count = static_cast<size_t>(channels), positions = features.size() / count;
  std::vector<IntegerId> result;
  result.reserve(features.size());
  for (size_t p = 0; p < positions; ++p)
    for (size_t c = 0; c < count; ++c) result.push_back(features[c * positions + p]);
  return result;
}

}  // namespace mase
