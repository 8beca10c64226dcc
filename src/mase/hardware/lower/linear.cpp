// SPDX-License-Identifier: Apache-2.0
// Sums of products with rounded weights.
#include <algorithm>
#include <cmath>

#include "mase/formats/format.h"
#include "mase/hardware/integer_lowering.h"
#include "mase/hardware/lower_linear.h"

namespace mase::linear_lowering {
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

void note_exactness(const IntegerCall& call, const std::vector<std::vector<double>>& weights,
                    const std::vector<double>& biases, const std::vector<IntegerId>& sums) {
  const std::vector<IntegerId>& inputs = call.inputs[0];
  int bits = 0;
  for (size_t o = 0; o < sums.size(); ++o) {
    const int frac = call.builder.at(sums[o]).frac;
    double largest = biases.empty() ? 0 : std::abs(std::ldexp(biases[o], frac));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const IntegerNode& x = call.builder.at(inputs[i]);
      const double most = std::max(std::abs(static_cast<double>(x.range.low)),
                                   std::abs(static_cast<double>(x.range.high)));
      largest += most * std::abs(std::ldexp(weights[i][o], frac - x.frac));
    }
    bits = std::max(bits, static_cast<int>(std::ceil(std::log2(std::max(largest, 1.0)))));
  }
  call.network.float32.push_back({call.node.name, bits <= 24, bits});
}

std::optional<std::vector<IntegerId>> lower(const IntegerCall& call) {
  if (!call.call.module)
    call.refuse("its weights are values of the network, not a layer's own",
                "use a Linear module: hardware has layers with constant weights");
  if (call.shape.size() != 2)
    call.refuse(fmt::format("it is applied to {} for each row, not to one vector of features",
                            shape_text({call.shapes[0].begin() + 1, call.shapes[0].end()})),
                "flatten before it: hardware has linear layers on one vector of features");
  const std::vector<IntegerId>& inputs = call.inputs[0];
  const Tensor weight = *rounded_parameter(call, "weight");
  const std::optional<Tensor> bias = rounded_parameter(call, "bias");
  const size_t out = static_cast<size_t>(weight.shape()[0]),
               in = static_cast<size_t>(weight.shape()[1]);
  MASE_CHECK(inputs.size() == in, "{} features for {} inputs", inputs.size(), in);
  std::vector<std::vector<double>> weights(in, std::vector<double>(out));
  for (size_t o = 0; o < out; ++o)
    for (size_t i = 0; i < in; ++i) {
      weights[i][o] = weight.item(static_cast<int64_t>(o * in + i));
      check_constant(call, "weight", weights[i][o]);
    }
  std::vector<double> biases;
  for (size_t o = 0; bias && o < out; ++o) {
    biases.push_back(bias->item(static_cast<int64_t>(o)));
    check_constant(call, "bias", biases.back());
  }
  std::vector<IntegerId> sums = lower_linear(call.builder, inputs, weights, biases, call.node.name);
  note_exactness(call, weights, biases, sums);
  return sums;
}

const Register<IntegerLowering> registered{{
    .name = "linear",
    .summary = "sums of products with rounded weights, for one vector of features",
    .lower = lower,
}};

}  // namespace
}  // namespace mase::linear_lowering
