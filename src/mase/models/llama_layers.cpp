// SPDX-License-Identifier: Apache-2.0
#include "mase/models/llama_layers.h"

#include "mase/base/text.h"

namespace mase {

void build_llama(HfNetwork& net, const LlamaVariant& variant) {
  // Networks that answer questions have another name in front.
  const std::string base = net.has("transformer.embed_tokens.weight")
                               ? "transformer."
                               : net.prefix("model.", "embed_tokens.weight");
  const HfHead head = net.head(HfHead::causal_lm);
  const int64_t width = net.whole("hidden_size"), heads = net.whole("num_attention_heads"),
                key_heads = net.whole_or("num_key_value_heads", heads),
                layers = net.layers("num_hidden_layers"), inner = net.whole("intermediate_size"),
                vocabulary = net.whole("vocab_size");
  if (net.config()["head_dim"].is_null() && width % heads != 0)
    net.refuse(fmt::format("{} features in {} heads", width, heads));
  if (heads % key_heads != 0)
    net.refuse(fmt::format("{} heads cannot share {} of keys", heads, key_heads));
  const int64_t each = net.whole_or("head_dim", width / heads);
  const double eps = net.number("rms_norm_eps", 1e-6);
  if (!(eps > 0)) net.refuse("'rms_norm_eps' is not above 0");
  const std::string act = net.word("hidden_act", "silu");
  const Rope rope = rope_of(net.config(), each, net.tokens(), net.place());
  if (rope.length > 0 && net.decodes() && net.cached() > rope.length)
    net.refuse(
        fmt::format("the rope's type turns earlier keys again behind {} tokens", rope.length),
        "generate no more than these");
  // Positions that are given may lie behind the length, however short the text is.
  const bool beyond =
      net.tokens() > rope.length ||
      (net.input("position_ids") && net.whole_or("max_position_embeddings", 2048) > rope.length);
  if (rope.length > 0 && net.has_positions() && !net.decodes() && beyond)
    net.refuse(
        fmt::format("how the rope's type turns depends on the positions of texts longer than "
                    "{} tokens",
                    rope.length),
        "give such texts without mask and positions");
  net.begin_cache(layers, key_heads, each);
  NodeId x = net.embedding(base + "embed_tokens", vocabulary, width, net.ids());
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("{}layers.{}.", base, i);
    NodeId y = net.rms_norm(layer + "input_layernorm", x, eps);
    const auto part = [&](const char* which, int64_t count) {
      return net.linear(layer + "self_attn." + which, y, count * each, variant.qkv_bias);
    };
    AttentionParts parts{part("q_proj", heads),
                         part("k_proj", key_heads),
                         part("v_proj", key_heads),
                         heads,
                         key_heads,
                         each};
    parts.causal = true;
    parts.rope = &rope;
    if (variant.window) parts.window = variant.window(i);
    if (variant.head_norms) {
      parts.norm_eps = eps;
      parts.norm_path = layer + "self_attn.";
    }
    y = net.attention(i, parts);
    x = net.add(x, net.linear(layer + "self_attn.o_proj", y, width, variant.out_bias));
    y = net.rms_norm(layer + "post_attention_layernorm", x, eps);
    const NodeId gate =
        net.activation(act, net.linear(layer + "mlp.gate_proj", y, inner, variant.mlp_bias));
    const NodeId up = net.linear(layer + "mlp.up_proj", y, inner, variant.mlp_bias);
    y = net.net().function("mul", {gate, up});
    x = net.add(x, net.linear(layer + "mlp.down_proj", y, width, variant.mlp_bias));
  }
  net.finish_causal(head, net.rms_norm(base + "norm", x, eps), base + "embed_tokens.weight",
                    vocabulary);
}

std::function<int64_t(int64_t layer)> listed_windows(const HfNetwork& net) {
  const Value& kinds = net.config()["layer_types"];
  const int64_t layers = net.layers("num_hidden_layers");
  if (!net.flag("use_sliding_window", false) && !kinds.is_list()) return {};
  const bool used = net.flag("use_sliding_window", false);
  const int64_t window = used ? net.whole_or("sliding_window", 4096) : 0;
  if (kinds.is_list()) {
    std::vector<int64_t> each;
    for (const Value& kind : kinds.as_list()) {
      const std::string& word = kind.as_string("layer_types");
      if (word != "full_attention" && word != "sliding_attention")
        net.refuse(fmt::format("layers of type '{}' are not known", printable(word)));
      if (word == "sliding_attention" && !used)
        net.refuse("'layer_types' has layers with windows and 'use_sliding_window' is false");
      each.push_back(word == "sliding_attention" ? net.whole("sliding_window") : 0);
    }
    if (static_cast<int64_t>(each.size()) != layers)
      net.refuse(fmt::format("'layer_types' has {} for {} layers", each.size(), layers));
    return [each](int64_t layer) { return each[static_cast<size_t>(layer)]; };
  }
  const int64_t first = net.whole_or("max_window_layers", 28);
  return [=](int64_t layer) { return layer >= first ? window : 0; };
}

GgufNames llama_gguf_names(const std::string& architecture, bool paired) {
  GgufNames names;
  names.architecture = architecture;
  names.keys = {{"block_count", "num_hidden_layers"},
                {"embedding_length", "hidden_size"},
                {"feed_forward_length", "intermediate_size"},
                {"attention.head_count", "num_attention_heads"},
                {"attention.head_count_kv", "num_key_value_heads", false},
                {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
                {"rope.freq_base", "rope_theta", false},
                {"context_length", "max_position_embeddings"}};
  const std::string layer = "model.layers.#.";
  names.tensors = {{"token_embd", "model.embed_tokens"},
                   {"output_norm", "model.norm"},
                   {"output", "lm_head"},
                   {"blk.#.attn_norm", layer + "input_layernorm"},
                   {"blk.#.ffn_norm", layer + "post_attention_layernorm"},
                   {"blk.#.attn_q", layer + "self_attn.q_proj"},
                   {"blk.#.attn_k", layer + "self_attn.k_proj"},
                   {"blk.#.attn_v", layer + "self_attn.v_proj"},
                   {"blk.#.attn_output", layer + "self_attn.o_proj"},
                   {"blk.#.attn_q_norm", layer + "self_attn.q_norm"},
                   {"blk.#.attn_k_norm", layer + "self_attn.k_norm"},
                   {"blk.#.ffn_gate", layer + "mlp.gate_proj"},
                   {"blk.#.ffn_up", layer + "mlp.up_proj"},
                   {"blk.#.ffn_down", layer + "mlp.down_proj"}};
  if (paired) names.paired = {"blk.#.attn_q", "blk.#.attn_k"};
  return names;
}

}  // namespace mase
