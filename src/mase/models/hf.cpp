// SPDX-License-Identifier: Apache-2.0
#include "mase/models/hf.h"

#include <algorithm>

#include "mase/base/text.h"
#include "mase/models/encoder.h"

namespace mase {
namespace {

constexpr int64_t usual_tokens = 128;  // of a sample, where no data say it

int64_t whole(const Value& config, const char* key, const std::string& place) {
  const Value& value = config[key];
  constexpr int64_t most = int64_t{1} << 24;
  if (!value.is_int() || value.as_int() < 1 || value.as_int() > most)
    throw Error(place, fmt::format("config.json: '{}' is no whole number from 1 to 2^24", key));
  return value.as_int();
}

EncoderSizes sizes_of(const Value& config, const std::string& place) {
  EncoderSizes sizes{whole(config, "num_hidden_layers", place), whole(config, "hidden_size", place),
                     whole(config, "num_attention_heads", place),
                     whole(config, "intermediate_size", place)};
  constexpr int64_t most_layers = 1000;
  if (sizes.layers > most_layers || sizes.width % sizes.heads != 0)
    throw Error(place, fmt::format("config.json: {} layers, {} features in {} heads", sizes.layers,
                                   sizes.width, sizes.heads));
  if (config["layer_norm_eps"].is_number()) sizes.eps = config["layer_norm_eps"].as_double();
  const Value& positions = config["position_embedding_type"];
  if (positions.is_string() && positions.as_string() != "absolute")
    throw Error(
        place,
        fmt::format("config.json: positions '{}' are not known", printable(positions.as_string())),
        "encoders with absolute positions are read");
  const std::string act =
      config["hidden_act"].is_string() ? config["hidden_act"].as_string() : "gelu";
  if (act == "gelu_new" || act == "gelu_pytorch_tanh")
    sizes.approximate = "tanh";
  else if (act == "relu" || act == "silu" || act == "gelu")
    sizes.activation = act;
  else
    throw Error(place, fmt::format("config.json: activation '{}' is not known", printable(act)),
                "known: gelu, gelu_new, gelu_pytorch_tanh, relu, silu");
  return sizes;
}

}  // namespace

Graph make_hf_network(const Value& config, TensorTable& tensors, const ModelInputs& inputs,
                      const std::string& place) {
  const std::string type = config["model_type"].is_string() ? config["model_type"].as_string() : "";
  if (type != "bert")
    throw Error(place, fmt::format("config.json: a network of type '{}'", printable(type)),
                "BERT-like encoders (model_type bert) are read");
  const EncoderSizes sizes = sizes_of(config, place);
  std::erase_if(
      tensors, [](const auto& entry) { return ends_with(entry.first, "embeddings.position_ids"); });
  const auto has = [&](const std::string& name) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const auto& entry) { return entry.first == name; });
  };
  const std::string prefix = has("bert.embeddings.word_embeddings.weight") ? "bert." : "";
  const bool classifies = has("classifier.weight");
  const int64_t positions = whole(config, "max_position_embeddings", place);
  ModelInputs given = inputs;
  if (classifies && given.outputs == 0)
    for (const auto& [name, tensor] : tensors)
      if (name == "classifier.weight" && tensor.shape().size() == 2)
        given.outputs = tensor.shape()[0];
  NetworkBuilder net(type, given, {std::min(usual_tokens, positions)}, 2);
  if (net.shape(net.input()).size() != 2 || net.shape(net.input())[1] > positions)
    throw Error(place, fmt::format("the network takes up to {} token numbers, the data give {}",
                                   positions, shape_text(inputs.sample_shape)));
  const std::string from = prefix + "embeddings.";
  NodeId x = net.module(
      from + "word_embeddings", "embedding",
      {{"num_embeddings", whole(config, "vocab_size", place)}, {"embedding_dim", sizes.width}},
      net.input());
  x = net.module(from + "position_embeddings", "position_embedding",
                 {{"num_embeddings", positions}}, x);
  // Sentences of one part: the first type of tokens everywhere.
  const NodeId kinds = net.parameter(from + "token_type_embeddings.weight",
                                     {whole(config, "type_vocab_size", place), sizes.width}, 0.02);
  x = net.function("add", {x, net.function("getitem", {kinds}, {0})});
  x = net.module(from + "LayerNorm", "layer_norm",
                 {{"normalized_shape", sizes.width}, {"eps", sizes.eps}}, x);
  x = encoder_layers(net, prefix, x, sizes);
  if (!has(prefix + "pooler.dense.weight")) {
    if (classifies)
      throw Error(place, "a classifier without a pooler", "BertForSequenceClassification has both");
    return net.finish(x);
  }
  const Value all = Dict{{"slice", List{Value(), Value(), Value()}}};
  NodeId pooled = net.function("getitem", {x}, {Value(List{all, 0})});
  pooled = net.function("tanh", {net.linear(prefix + "pooler.dense", pooled, sizes.width)});
  if (!classifies) return net.finish({x, pooled});
  return net.finish(net.linear("classifier", pooled, net.outputs()));
}

}  // namespace mase
