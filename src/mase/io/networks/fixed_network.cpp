// SPDX-License-Identifier: Apache-2.0
// Multi-layer perceptrons in fixed point as trainers of such networks hand them on: NAME.json with
// layer sizes, rounding and overflow, beside it NAME.safetensors with exact weights [in][out] and,
// per feature, k, i and f: the sign, integer and fraction bits of a layer's input.
//   q(x) -> W, b -> ReLU -> q -> ...      =>      Linear, ReLU, Linear, ...; integer formats
// The files say what weights are, not what format they had: each layer's weights get the narrowest
// one that holds them all.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "mase/io/networks/checkpoint.h"
#include "mase/io/networks/importer.h"
#include "mase/ir/op.h"

namespace mase::fixed_network_importer {
namespace {

constexpr int64_t most_features = 1 << 20;
constexpr int most_bits = 32;

const Tensor* find(const TensorTable& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

const Tensor& required(const TensorTable& tensors, const std::string& name, const Shape& shape,
                       const std::string& place) {
  const Tensor* tensor = find(tensors, name);
  if (!tensor) throw Error(place, fmt::format("there is no tensor '{}'", name));
  if (tensor->shape() != shape)
    throw Error(place, fmt::format("'{}' has shape {}, not {}", name, shape_text(tensor->shape()),
                                   shape_text(shape)));
  return *tensor;
}

int64_t bits(const Tensor& tensor, int64_t index, const std::string& name,
             const std::string& place) {
  const double value = tensor.item(index);
  if (!(std::abs(value) <= 60) || value != std::floor(value))
    throw Error(place, fmt::format("'{}' holds {}, not a number of bits", name, value));
  return static_cast<int64_t>(value);
}

const char* rounding_name(const Value& word, const char* key, const std::string& place) {
  const std::string& text = word.as_string(key);
  if (text == "RND") return "half_up";
  if (text == "RND_CONV") return "nearest_even";
  if (text == "TRN") return "floor";
  throw Error(place, fmt::format("unknown rounding '{}'", printable(text)),
              "known: RND, RND_CONV, TRN");
}

const char* overflow_name(const Value& word, const char* key, const std::string& place) {
  const std::string& text = word.as_string(key);
  if (text == "SAT") return "saturate";
  if (text == "WRAP") return "wrap";
  throw Error(place, fmt::format("unknown overflow '{}'", printable(text)), "known: SAT, WRAP");
}

// PREFIX_k, _i and _f of the file as the keys of one operand. Features that are all alike share one
// format.
void add_feature_format(Dict& config, const std::string& operand, const TensorTable& tensors,
                        const std::string& prefix, int64_t count, const std::string& place) {
  const Tensor& k = required(tensors, prefix + "_k", {count}, place);
  const Tensor& i = required(tensors, prefix + "_i", {count}, place);
  const Tensor& f = required(tensors, prefix + "_f", {count}, place);
  List widths, fracs, signs;
  bool alike = true;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t sign = bits(k, n, prefix + "_k", place);
    if (sign != 0 && sign != 1)
      throw Error(place, fmt::format("'{}_k' holds {}, not 0 or 1", prefix, sign));
    const int64_t frac = bits(f, n, prefix + "_f", place);
    const int64_t width = sign + bits(i, n, prefix + "_i", place) + frac;
    if (width > most_bits)
      throw Error(place,
                  fmt::format("'{}' has {} bits; the limit is {}", prefix, width, most_bits));
    widths.push_back(std::max<int64_t>(width, 0));
    fracs.push_back(frac);
    signs.push_back(sign == 1);
    alike =
        alike && widths.back() == widths[0] && fracs.back() == fracs[0] && signs.back() == signs[0];
  }
  alike = alike && widths[0].as_int() > 0;
  config.set(operand + "_width", alike ? widths[0] : Value(widths));
  config.set(operand + "_frac_width", alike ? fracs[0] : Value(fracs));
  config.set(operand + "_is_signed", alike ? signs[0] : Value(signs));
  if (!alike) config.set(operand + "_granularity", "row");
}

// The narrowest two's complement that holds every one of these numbers.
struct Holding {
  int width = 1, frac = 0;
};
Holding narrowest(const Tensor& tensor, const std::string& name, const std::string& place) {
  int frac = std::numeric_limits<int>::min(), top = std::numeric_limits<int>::min();
  for (int64_t n = 0; n < tensor.numel(); ++n) {
    const double value = tensor.item(n);
    if (!std::isfinite(value))
      throw Error(place, fmt::format("'{}' holds {}, no finite number", name, value),
                  "train without infinities");
    if (value == 0) continue;
    if (static_cast<double>(static_cast<float>(value)) != value)
      throw Error(place, fmt::format("'{}' holds {}, which single precision rounds", name, value),
                  "give the weights fewer bits");
    int exponent = 0;
    double mantissa = std::frexp(value, &exponent);  // +-[0.5, 1) * 2^exponent
    // -2^n needs no bit more than the numbers above it.
    top = std::max(top, mantissa == -0.5 ? exponent - 1 : exponent);
    int used = 0;
    while (mantissa != std::floor(mantissa)) {
      mantissa *= 2;
      ++used;
    }
    frac = std::max(frac, used - exponent);
  }
  if (frac == std::numeric_limits<int>::min()) return {};
  const int width = top + frac + 1;
  if (width > most_bits || std::abs(frac) > 60)
    throw Error(place,
                fmt::format("'{}' needs {} bits, {} after the point; the limit is {}", name, width,
                            frac, most_bits),
                "give the weights fewer fraction bits");
  return {std::max(width, 1), frac};
}

int64_t features(const Value& layer, const char* key, const std::string& place) {
  const int64_t count = layer[key].as_int(key);
  if (count < 1 || count > most_features)
    throw Error(place, fmt::format("'{}' is {}", key, count), "give a number of features");
  return count;
}

void quantise(Module& module, const Dict& config, const std::string& place) {
  const OpRecord& op = find_op(module.op);
  Problems problems;
  module.quantization = parse_quantization(config, {.names = op.operands}, place, problems);
  problems.throw_if_any();
}

Tensor transposed(const Tensor& tensor) {
  const int64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
  Tensor result({columns, rows});
  float* const values = result.mutable_data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      values[c * rows + r] = static_cast<float>(tensor.item(r * columns + c));
  return result;
}

ImportedNetwork read(const std::string& path, const Value&) {
  const Value description = read_json(path);
  const std::string place = std::filesystem::path(path).replace_extension(".safetensors").string();
  const TensorTable tensors = load_safetensors(place);
  if (!description["layers"].is_list() || description["layers"].as_list().empty())
    throw Error(path, "lists no layers");
  ImportedNetwork result;
  result.integers = true;
  Graph& graph = result.graph;
  graph.name = std::filesystem::path(path).stem().string();
  NodeId last = -1;
  int64_t width = 0;
  const List& layers = description["layers"].as_list();
  std::vector<std::string> formats;
  for (size_t n = 0; n < layers.size(); ++n) {
    const std::string name = fmt::format("layer{}", n);
    const Value& entry = layers[n];
    const int64_t in = features(entry, "inputs", path), out = features(entry, "outputs", path);
    if (n == 0)
      last = graph.add_placeholder("x", {in});
    else if (in != width)
      throw Error(path,
                  fmt::format("{} takes {} features, the layer before gives {}", name, in, width));
    width = out;
    const Tensor& weight = required(tensors, name + ".weight", {in, out}, place);
    const Tensor& bias = required(tensors, name + ".bias", {out}, place);
    const Holding weight_format = narrowest(weight, name + ".weight", place),
                  bias_format = narrowest(bias, name + ".bias", place);
    Module linear =
        make_module("linear", Dict{{"in_features", in}, {"out_features", out}}, 0, name);
    *linear.find("weight") = transposed(weight);
    *linear.find("bias") = bias.to(DType::f32);
    Dict config{{"name", "integer"}};
    add_feature_format(config, "data_in", tensors, name + ".in", in, place);
    config.set("data_in_rounding", rounding_name(entry["in_round"], "in_round", path));
    config.set("data_in_overflow", overflow_name(entry["in_overflow"], "in_overflow", path));
    config.set("weight_width", weight_format.width);
    config.set("weight_frac_width", weight_format.frac);
    config.set("bias_width", bias_format.width);
    config.set("bias_frac_width", bias_format.frac);
    formats.push_back(fmt::format("{}/{}", weight_format.width, weight_format.frac));
    const bool relu = entry["relu"].as_bool("relu");
    const bool rounded = n + 1 == layers.size() && find(tensors, "out_k");
    Dict out_config{{"name", "integer"}};
    if (rounded) {
      Dict& target = relu ? out_config : config;
      add_feature_format(target, "data_out", tensors, "out", out, place);
      target.set("data_out_rounding", rounding_name(description["out_round"], "out_round", path));
      target.set("data_out_overflow",
                 overflow_name(description["out_overflow"], "out_overflow", path));
    }
    quantise(linear, config, fmt::format("{}: {}", path, name));
    last = graph.add_module(name, std::move(linear), {last});
    if (!relu) continue;
    Module activation = make_module("relu", Dict{}, 0, name + "_relu");
    if (rounded) quantise(activation, out_config, fmt::format("{}: {}_relu", path, name));
    last = graph.add_module(name + "_relu", std::move(activation), {last});
  }
  graph.add_output({last});
  result.notes.push_back(fmt::format(
      "weights in the narrowest fixed point that holds them exactly: {}", join(formats, ", ")));
  return result;
}

const Register<ImporterRecord> registered{{
    .name = "fixed_point",
    .summary = "NAME.json beside NAME.safetensors: exact weights, bits of every feature",
    .suffixes = {".json"},
    .read = read,
}};

}  // namespace
}  // namespace mase::fixed_network_importer
