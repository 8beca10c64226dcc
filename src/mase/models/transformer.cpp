// SPDX-License-Identifier: Apache-2.0
// Small transformers for sequences of token numbers: encoders as BERT's (Devlin et al., 2019) with
// Hugging Face's parameter names, and a decoder as Llama's (Touvron et al., 2023): grouped queries,
// rotary positions, RMS norms, gated layers.
#include "mase/models/encoder.h"

namespace mase::transformer_model {
namespace {

struct Sizes {
  int64_t layers, width, heads, inner, tokens, vocabulary;
  int64_t key_heads = 0;
};

Graph build_encoder(const std::string& name, const ModelInputs& inputs, const Sizes& s) {
  NetworkBuilder net(name, inputs, {s.tokens}, 2);
  NodeId x =
      net.module("embeddings.word_embeddings", "embedding",
                 {{"num_embeddings", s.vocabulary}, {"embedding_dim", s.width}}, net.input());
  x = net.module("embeddings.position_embeddings", "position_embedding",
                 {{"num_embeddings", std::max<int64_t>(512, net.shape(x)[1])}}, x);
  x = net.module("embeddings.LayerNorm", "layer_norm",
                 {{"normalized_shape", s.width}, {"eps", 1e-12}}, x);
  x = encoder_layers(net, "", x, {s.layers, s.width, s.heads, s.inner});
  x = net.function("mean", {x}, {1});
  return net.finish(net.linear("classifier", x, net.outputs()));
}

Graph build_decoder(const std::string& name, const ModelInputs& inputs, const Sizes& s) {
  NetworkBuilder net(name, inputs, {s.tokens}, 2);
  const auto linear = [&](const std::string& path, NodeId x, int64_t features) {
    return net.module(path, "linear", {{"out_features", features}, {"bias", false}}, x);
  };
  const auto rms = [&](const std::string& path, NodeId x) {
    return net.module(path, "rms_norm", {{"normalized_shape", s.width}, {"eps", 1e-6}}, x);
  };
  NodeId x =
      net.module("model.embed_tokens", "embedding",
                 {{"num_embeddings", s.vocabulary}, {"embedding_dim", s.width}}, net.input());
  const int64_t each = s.width / s.heads;
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    NodeId y = rms(layer + "input_layernorm", x);
    const auto part = [&](const char* which, int64_t heads) {
      return split_heads(net, linear(layer + "self_attn." + which, y, heads * each), heads);
    };
    const NodeId q = net.function("rotary_embedding", {part("q_proj", s.heads)});
    const NodeId k = net.function("rotary_embedding", {part("k_proj", s.key_heads)});
    const NodeId v = part("v_proj", s.key_heads);
    y = net.function("scaled_dot_product_attention", {q, k, v}, {true});
    x = net.function("add", {x, linear(layer + "self_attn.o_proj", join_heads(net, y), s.width)});
    y = rms(layer + "post_attention_layernorm", x);
    const NodeId gate = net.function("silu", {linear(layer + "mlp.gate_proj", y, s.inner)});
    const NodeId up = linear(layer + "mlp.up_proj", y, s.inner);
    y = linear(layer + "mlp.down_proj", net.function("mul", {gate, up}), s.width);
    x = net.function("add", {x, y});
  }
  x = rms("model.norm", x);
  // What the last position has seen of all before it.
  x = net.function("narrow", {x}, {1, -1, 1});
  x = net.function("squeeze", {x}, {1});
  return net.finish(linear("score", x, net.outputs()));
}

const Register<ModelRecord> bert{
    {.name = "bert-tiny",
     .summary = "tokens, an encoder of 2 layers, 128 wide, with Hugging Face's parameter names",
     .build = [](const ModelInputs& inputs) {
       return build_encoder("bert-tiny", inputs, {2, 128, 2, 512, 128, 30522});
     }}};
const Register<ModelRecord> minilm{
    {.name = "minilm-l6",
     .summary = "tokens, an encoder of 6 layers, 384 wide, with Hugging Face's parameter names",
     .build = [](const ModelInputs& inputs) {
       return build_encoder("minilm-l6", inputs, {6, 384, 12, 1536, 128, 30522});
     }}};
const Register<ModelRecord> llama{
    {.name = "llama-tiny",
     .summary = "tokens, a decoder of 2 layers, 128 wide, four heads on two of keys and values",
     .build = [](const ModelInputs& inputs) {
       return build_decoder("llama-tiny", inputs, {2, 128, 4, 384, 64, 32000, 2});
     }}};

}  // namespace
}  // namespace mase::transformer_model
