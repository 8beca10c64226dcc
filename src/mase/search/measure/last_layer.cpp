// SPDX-License-Identifier: Apache-2.0
#include "mase/search/measure/last_layer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "mase/data/token_rows.h"
#include "mase/engine/kernels/integer_dot.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/formats/fixed.h"
#include "mase/ir/layer_text.h"
#include "mase/search/kernels/integer_hits.h"

namespace mase::search {
namespace {

std::vector<float> plain_values(const Module& module, const std::string& name) {
  const Tensor* tensor = module.find(name);
  if (!tensor) return {};
  const Tensor plain = tensor->to(DType::f32);
  return {plain.data<float>(), plain.data<float>() + plain.numel()};
}

// One fixed-point type for all values.
const Fixed* fixed_point(const Quantizer& quantizer) {
  const Fixed* fixed = quantizer.type ? quantizer.type->as<Fixed>() : nullptr;
  return fixed && fixed->widths.empty() && fixed->fracs.empty() ? fixed : nullptr;
}

// Products as integers, where the sums are the same numbers in float32.
void make_integers(const Quantization& formats, int64_t in, int64_t out,
                   LastLayer::Variant& variant) {
  const Quantizer *data = formats.find("data_in"), *weight = formats.find("weight"),
                  *bias = formats.find("bias");
  const Fixed* x = data ? fixed_point(*data) : nullptr;
  const Fixed* w = weight ? fixed_point(*weight) : nullptr;
  if (!kernels::has_integer_dot() || !x || !w || x->width > 8 || w->width > 8 || !w->is_signed ||
      std::abs(x->frac) > 60 || std::abs(w->frac) > 60)
    return;
  int finest = x->frac + w->frac;  // every partial sum is a whole number of these
  if (!variant.bias.empty()) {
    const Fixed* b = bias ? fixed_point(*bias) : nullptr;
    if (!b || std::abs(b->frac) > 60) return;
    finest = std::max(finest, b->frac);
  }
  const double scale = std::ldexp(1.0, w->frac), product = std::ldexp(1.0, x->frac + w->frac);
  const double units = std::ldexp(1.0, finest), step = units / product;
  const int32_t offset = x->is_signed ? 128 : 0;
  const int64_t quads = (in + kernels::quad - 1) / kernels::quad;
  if (quads > kernels::integer_longest_sum) return;
  variant.words.assign(static_cast<size_t>(out * quads), 0);
  variant.starts.assign(static_cast<size_t>(out), 0);
  for (int64_t o = 0; o < out; ++o) {
    const auto row = static_cast<size_t>(o);
    double largest = variant.bias.empty() ? 0 : std::abs(variant.bias[row]) * units;
    for (int64_t i = 0; i < in; ++i) {
      const double code = variant.weight[static_cast<size_t>(o * in + i)] * scale;
      if (!(code >= -128 && code <= 127) || code != std::floor(code)) return;
      const auto whole = static_cast<int32_t>(code);
      largest += std::abs(code) * (x->is_signed ? 128 : 255) * step;
      variant.words[static_cast<size_t>(o * quads + i / kernels::quad)] |=
          (static_cast<uint32_t>(whole) & 255u) << (8 * (i % kernels::quad));
      variant.starts[row] -= offset * whole;
    }
    constexpr double limit = 16777216;  // sums below 2^24 are exact in float32
    if (!(largest < limit)) return;
  }
  variant.unit = static_cast<float>(1 / product);
  variant.integers = true;
}

}  // namespace

std::optional<std::vector<float>> rounded_values(const Module& module, const std::string& name) {
  std::vector<float> values = plain_values(module, name);
  const Quantizer* quantizer = module.quantization.find(name);
  if (values.empty() || !quantizer) return values;
  if (quantizer->learned) return {};
  quantizer->quantize(values.data(), values.data(), module.find(name)->shape());
  return values;
}

std::optional<LastLayer> LastLayer::at(const Graph& graph, size_t place, const Dataset& dataset) {
  if (!dataset.classification || has_token_labels(dataset) || !dataset.class_weights.empty() ||
      loss_for(dataset).name != "cross_entropy")
    return {};
  std::vector<NodeId> nodes;
  for (size_t i = place; i < graph.order().size(); ++i)
    if (graph.node(graph.order()[i]).kind != NodeKind::output) nodes.push_back(graph.order()[i]);
  const auto is = [&](NodeId id, const char* op) {
    const OpRecord* record = op_of(graph, graph.node(id));
    return record && record->name == op;
  };
  if (nodes.empty() || !is(nodes[0], "linear") || graph.outputs() != std::vector{nodes.back()})
    return {};
  const Module* module = graph.module_of(graph.node(nodes[0]));
  const Tensor* weight = module ? module->find("weight") : nullptr;
  const Shape input = infer_shapes(graph, 1).at(static_cast<size_t>(graph.inputs_of(nodes[0])[0]));
  if (!weight || weight->shape().size() != 2 || input.size() != 2) return {};
  LastLayer layer;
  layer.node_ = nodes[0];
  layer.after_.assign(nodes.begin() + 1, nodes.end());
  layer.out_ = weight->shape()[0];
  layer.in_ = weight->shape()[1];
  size_t next = 1;
  if (next < nodes.size() && is(nodes[next], "batch_norm1d")) {
    const Module& norm = *graph.module_of(graph.node(nodes[next++]));
    if (!norm.find("running_mean") || !norm.find("running_var")) return {};
    layer.norm_.emplace();
    layer.norm_->eps = norm.attributes["eps"].as_double();
    layer.norm_->mean = plain_values(norm, "running_mean");
    layer.norm_->weight = plain_values(norm, "weight");
    layer.norm_->bias = plain_values(norm, "bias");
    for (const float variance : plain_values(norm, "running_var")) {
      const size_t c = layer.norm_->inverse.size();
      const auto inverse = static_cast<float>(1 / std::sqrt(variance + layer.norm_->eps));
      layer.norm_->inverse.push_back(inverse);
      layer.norm_->factor.push_back(inverse *
                                    (layer.norm_->weight.empty() ? 1.0f : layer.norm_->weight[c]));
      layer.norm_->shift.push_back(layer.norm_->bias.empty() ? 0.0f : layer.norm_->bias[c]);
    }
  }
  if (next < nodes.size() && is(nodes[next], "relu")) {
    layer.relu_ = true;
    ++next;
  }
  for (size_t i = 1; i < nodes.size(); ++i)
    if (graph.inputs_of(nodes[i]) != std::vector{nodes[i - 1]}) return {};
  if (next != nodes.size()) return {};
  return layer;
}

std::optional<LastLayer::Variant> LastLayer::variant(const Graph& graph) const {
  const Module& module = *graph.module_of(graph.node(node_));
  const Quantization& own = module.quantization;
  if (own.find("data_out") || !module.masks.empty()) return {};
  for (const NodeId node : after_)
    if (graph.quantization_of(graph.node(node)).active()) return {};
  // Weights that are not rounded take the batch norm in, and that is another sum.
  if (norm_ && !own.find("weight")) return {};
  Variant variant;
  if (const Quantizer* data = own.find("data_in")) {
    if (!data->elementwise || data->learned) return {};
    variant.data = own.operands.at("data_in");
  }
  auto weight = rounded_values(module, "weight"), bias = rounded_values(module, "bias");
  if (!weight || !bias) return {};
  variant.weight = std::move(*weight);
  variant.bias = std::move(*bias);
  make_integers(own, in_, out_, variant);
  return variant;
}

// A block of rows and room for what is computed from it, rows of features with padding behind.
class LastLayer::Block {
 public:
  Block(const LastLayer& layer, int64_t batch_size)
      : layer_(layer),
        // An odd number of cache lines, so that rows do not fall on each other in the cache.
        stride_(((batch_size + lanes - 1) / lanes | 1) * lanes),
        labels_(static_cast<size_t>(stride_ + lanes)) {
    for (int64_t q = 0; q * kernels::quad < layer.in_; ++q) offsets_.push_back(q * stride_);
    x_ = floats(layer.in_);
    rounded_ = floats(layer.in_);
    codes_ = floats(static_cast<int64_t>(offsets_.size()));
    y_ = floats(layer.out_);
    normal_ = floats(layer.out_);
  }

  void take(const float* rows, const int32_t* labels, int64_t n) {
    n_ = n;
    std::copy_n(labels, n, labels_.begin());
    kernels::gather(rows, layer_.in_, nullptr, 0, n, at(x_), stride_);
  }

  // The data of all variants of a group: straight to codes where nobody needs more.
  void round(const Group& group) {
    const Variant& one = *group.variants.front();
    from_ = at(x_);
    packed_ = false;
    if (!one.data) return;
    const Fixed* fixed = fixed_point(*one.data);
    const auto fit = [](const Variant* variant) { return variant->integers; };
    const bool some = fixed && std::any_of(group.variants.begin(), group.variants.end(), fit);
    const int32_t offset = fixed && fixed->is_signed ? 128 : 0;
    if (some && std::all_of(group.variants.begin(), group.variants.end(), fit)) {
      const IntegerSpec spec = integer_spec(*fixed);
      packed_ = rounds_to_quads(spec) &&
                round_quads(spec, {layer_.in_, stride_, n_, spec.scale, offset, stride_}, at(x_),
                            words(codes_));
      if (packed_) return;
    }
    one.data->quantize(at(x_), at(rounded_), Shape{layer_.in_ * stride_});
    from_ = at(rounded_);
    if (some)
      packed_ = kernels::pack_quads(
          {layer_.in_, stride_, n_, std::ldexp(1.0f, fixed->frac), offset, stride_}, from_,
          words(codes_));
  }

  void score(const Variant& variant, bool losses, Score& score) {
    const bool normed = layer_.norm_.has_value(), relu = layer_.relu_ && !normed;
    const float* bias = variant.bias.empty() ? nullptr : variant.bias.data();
    if (packed_ && variant.integers && !losses) {
      score.rows += n_;
      score.correct += integer_hits({.classes = layer_.out_,
                                     .quads = static_cast<int64_t>(offsets_.size()),
                                     .stride = stride_,
                                     .n = n_,
                                     .words = variant.words.data(),
                                     .starts = variant.starts.data(),
                                     .unit = variant.unit,
                                     .bias = bias,
                                     .mean = normed ? layer_.norm_->mean.data() : nullptr,
                                     .factor = normed ? layer_.norm_->factor.data() : nullptr,
                                     .shift = normed ? layer_.norm_->shift.data() : nullptr,
                                     .relu = layer_.relu_},
                                    words(codes_), labels_.data());
      return;
    }
    if (packed_ && variant.integers) {
      const auto quads = static_cast<int64_t>(offsets_.size());
      kernels::integer_linear({.out = layer_.out_,
                               .in = quads,
                               .out_step = quads,
                               .in_step = 1,
                               .offsets = offsets_.data(),
                               .y_stride = stride_,
                               .n = n_},
                              variant.words.data(), variant.starts.data(), variant.unit, bias,
                              words(codes_), at(y_), kernels::Finish::relu(relu));
    } else {
      kernels::linear({.out = layer_.out_,
                       .in = layer_.in_,
                       .out_step = layer_.in_,
                       .in_step = 1,
                       .stride = stride_,
                       .n = n_},
                      variant.weight.data(), bias, from_, at(y_), relu, false);
    }
    const float* logits = at(y_);
    if (normed) {
      const Norm& norm = *layer_.norm_;
      const auto given = [](const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
      kernels::norm_apply({.channels = layer_.out_, .positions = 1, .stride = stride_, .n = n_},
                          {given(norm.weight), given(norm.bias), norm.eps,
                           layer_.relu_ ? 0.0f : -std::numeric_limits<float>::infinity()},
                          logits, norm.mean.data(), norm.inverse.data(), at(normal_), {});
      logits = at(normal_);
    }
    score.rows += n_;
    if (!losses) {
      score.correct += kernels::hits(logits, layer_.out_, stride_, n_, labels_.data());
      return;
    }
    const kernels::CrossEntropyResult result = kernels::cross_entropy(
        logits, layer_.out_, stride_, n_, labels_.data(), nullptr, 1, nullptr);
    const auto count = static_cast<double>(n_);
    score.loss_sum += result.loss / count * count;  // the engine gives the mean of a batch
    score.loss_weight += count;
    score.correct += result.correct;
  }

 private:
  static constexpr int64_t lanes = 16;
  using Memory = std::shared_ptr<std::byte>;

  Memory floats(int64_t count) const {
    const size_t size = static_cast<size_t>(count * stride_) * sizeof(float);
    Memory bytes = aligned_bytes(size);
    std::memset(bytes.get(), 0, size);  // padding is rounded too
    return bytes;
  }
  static float* at(const Memory& memory) { return reinterpret_cast<float*>(memory.get()); }
  static uint32_t* words(const Memory& memory) { return reinterpret_cast<uint32_t*>(memory.get()); }

  const LastLayer& layer_;
  int64_t stride_, n_ = 0;
  std::vector<int32_t> labels_;
  std::vector<int64_t> offsets_;
  Memory x_, rounded_, codes_, y_, normal_;
  const float* from_ = nullptr;
  bool packed_ = false;
};

void LastLayer::score(const Input& input, std::span<const int32_t> labels, int64_t batch_size,
                      bool losses, std::span<const Group> groups) const {
  Block block(*this, batch_size);
  const auto rows = static_cast<int64_t>(labels.size());
  for (int64_t first = 0; first < rows; first += batch_size) {
    const int64_t n = std::min(batch_size, rows - first);
    block.take(input(first, n), labels.data() + first, n);
    for (const Group& group : groups) {
      block.round(group);
      for (size_t v = 0; v < group.variants.size(); ++v)
        block.score(*group.variants[v], losses, *group.scores[v]);
    }
  }
}

}  // namespace mase::search
