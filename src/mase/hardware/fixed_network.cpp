// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/fixed_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mase {
namespace {

const Tensor* tensor_named(const TensorTable& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

const Tensor& required(const TensorTable& tensors, const std::string& name, const Shape& shape,
                       const std::string& place) {
  const Tensor* tensor = tensor_named(tensors, name);
  if (!tensor) throw Error(place, fmt::format("there is no tensor '{}'", name));
  if (tensor->shape() != shape)
    throw Error(place, fmt::format("'{}' has shape {}, not {}", name, shape_text(tensor->shape()),
                                   shape_text(shape)));
  return *tensor;
}

int64_t whole(const Tensor& tensor, int64_t index, const std::string& name,
              const std::string& place) {
  const double value = tensor.item(index);
  if (!(std::abs(value) <= 60) || value != std::floor(value))
    throw Error(place, fmt::format("'{}' holds {}, not a number of bits", name, value));
  return static_cast<int64_t>(value);
}

IntegerRounding rounding_of(const std::string& word, const std::string& place) {
  if (word == "RND") return IntegerRounding::half_up;
  if (word == "RND_CONV") return IntegerRounding::nearest_even;
  if (word == "TRN") return IntegerRounding::floor;
  throw Error(place, fmt::format("unknown rounding '{}'", printable(word)),
              "known: RND, RND_CONV, TRN");
}

IntegerOverflow overflow_of(const std::string& word, const std::string& place) {
  if (word == "SAT") return IntegerOverflow::saturate;
  if (word == "WRAP") return IntegerOverflow::wrap;
  throw Error(place, fmt::format("unknown overflow '{}'", printable(word)), "known: SAT, WRAP");
}

std::vector<FixedFormat> formats(const TensorTable& tensors, const std::string& prefix,
                                 int64_t count, const std::string& rounding,
                                 const std::string& overflow, const std::string& place) {
  const Tensor& k = required(tensors, prefix + "_k", {count}, place);
  const Tensor& i = required(tensors, prefix + "_i", {count}, place);
  const Tensor& f = required(tensors, prefix + "_f", {count}, place);
  std::vector<FixedFormat> result;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t sign = whole(k, n, prefix + "_k", place);
    if (sign != 0 && sign != 1)
      throw Error(place, fmt::format("'{}_k' holds {}, not 0 or 1", prefix, sign));
    const int64_t frac = whole(f, n, prefix + "_f", place);
    const int64_t width = sign + whole(i, n, prefix + "_i", place) + frac;
    if (width > 32)
      throw Error(place, fmt::format("'{}' has {} bits; the limit is 32", prefix, width));
    result.push_back({sign == 1, static_cast<int>(std::max<int64_t>(width, 0)),
                      static_cast<int>(frac), rounding_of(rounding, place),
                      overflow_of(overflow, place)});
  }
  return result;
}

int64_t features(const Value& layer, const char* key, const std::string& place) {
  const int64_t count = layer[key].as_int(key);
  if (count < 1 || count > 1 << 20)
    throw Error(place, fmt::format("'{}' is {}", key, count), "give a number of features");
  return count;
}

}  // namespace

Dyadic dyadic(double value, const std::string& place) {
  if (!std::isfinite(value))
    throw Error(place, fmt::format("{} is no finite number", value), "train without infinities");
  if (value == 0) return {};
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  int64_t mantissa = static_cast<int64_t>(std::ldexp(fraction, 53));
  int frac = 53 - exponent;
  while ((mantissa & 1) == 0) {
    mantissa /= 2;
    --frac;
  }
  return {mantissa, frac};
}

FixedNetwork fixed_network(const std::string& name, const Value& description,
                           const TensorTable& tensors, const std::string& place) {
  FixedNetwork network{name, {}, {}};
  const List& layers = description["layers"].as_list("layers");
  if (layers.empty()) throw Error(place, "there are no layers");
  for (size_t n = 0; n < layers.size(); ++n) {
    const std::string prefix = fmt::format("layer{}", n);
    const Value& entry = layers[n];
    const int64_t in = features(entry, "inputs", place), out = features(entry, "outputs", place);
    if (n > 0 && static_cast<size_t>(in) != network.layers.back().weights[0].size())
      throw Error(place, fmt::format("{} takes {} features, the layer before gives {}", prefix, in,
                                     network.layers.back().weights[0].size()));
    FixedLayer layer;
    layer.name = prefix;
    layer.inputs = formats(tensors, prefix + ".in", in, entry["in_round"].as_string("in_round"),
                           entry["in_overflow"].as_string("in_overflow"), place);
    const Tensor& weight = required(tensors, prefix + ".weight", {in, out}, place);
    for (int64_t i = 0; i < in; ++i) {
      layer.weights.emplace_back();
      for (int64_t o = 0; o < out; ++o) layer.weights.back().push_back(weight.item(i * out + o));
    }
    const Tensor& bias = required(tensors, prefix + ".bias", {out}, place);
    for (int64_t o = 0; o < out; ++o) layer.bias.push_back(bias.item(o));
    layer.relu = entry["relu"].as_bool("relu");
    network.layers.push_back(std::move(layer));
  }
  const int64_t outputs = static_cast<int64_t>(network.layers.back().bias.size());
  if (tensor_named(tensors, "out_k"))
    network.outputs =
        formats(tensors, "out", outputs, description["out_round"].as_string("out_round"),
                description["out_overflow"].as_string("out_overflow"), place);
  return network;
}

std::vector<IntegerId> lower_linear(IntegerBuilder& builder, const std::vector<IntegerId>& inputs,
                                    const std::vector<std::vector<double>>& weights,
                                    const std::vector<double>& bias, const std::string& place) {
  std::vector<IntegerId> results;
  for (size_t o = 0; o < weights[0].size(); ++o) {
    // The binary point at which every term of the sum is whole.
    int frac = std::numeric_limits<int>::min();
    std::vector<std::pair<IntegerId, Dyadic>> terms;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Dyadic weight = dyadic(weights[i][o], place);
      const IntegerRange& range = builder.at(inputs[i]).range;
      if (weight.mantissa == 0 || (range.low == 0 && range.high == 0)) continue;
      terms.emplace_back(inputs[i], weight);
      frac = std::max(frac, weight.frac + builder.at(inputs[i]).frac);
    }
    const Dyadic constant = bias.empty() ? Dyadic{} : dyadic(bias[o], place);
    if (constant.mantissa != 0) frac = std::max(frac, constant.frac);
    if (terms.empty() && constant.mantissa == 0) frac = 0;
    const auto scaled = [&](const Dyadic& number, int own) {
      const int up = frac - number.frac - own;
      if (up > 60 || std::abs(std::ldexp(static_cast<double>(number.mantissa), up)) > 0x1p60)
        throw Error(place, fmt::format("its sums need more than {} bits", integer_limit_bits),
                    "give the weights fewer fraction bits");
      return number.mantissa * (int64_t{1} << up);
    };
    IntegerId sum = builder.constant(constant.mantissa == 0 ? 0 : scaled(constant, 0), frac);
    for (const auto& [id, weight] : terms)
      sum = builder.add(sum, 0, builder.scale(id, scaled(weight, builder.at(id).frac), frac), 0);
    results.push_back(sum);
  }
  return results;
}

IntegerGraph lower(const FixedNetwork& network) {
  IntegerBuilder builder(network.name);
  std::vector<IntegerId> values;
  for (size_t n = 0; n < network.layers.size(); ++n) {
    const FixedLayer& layer = network.layers[n];
    if (n == 0) {
      builder.add_layer("input");
      for (size_t i = 0; i < layer.inputs.size(); ++i)
        values.push_back(
            builder.input(layer.inputs[i].range(), layer.inputs[i].frac, fmt::format("x_{}", i)));
    } else {
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = builder.requantize(values[i], layer.inputs[i]);
    }
    builder.add_layer(layer.name);
    values = lower_linear(builder, values, layer.weights, layer.bias,
                          fmt::format("{}: {}", network.name, layer.name));
    if (layer.relu)
      for (IntegerId& value : values) value = builder.relu(value);
  }
  for (size_t o = 0; o < values.size(); ++o) {
    if (!network.outputs.empty()) values[o] = builder.requantize(values[o], network.outputs[o]);
    builder.output(values[o]);
  }
  return builder.finish();
}

}  // namespace mase
