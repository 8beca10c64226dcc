// SPDX-License-Identifier: Apache-2.0
// GPT-2 (Radford et al., 2019). Its layers are stored as [in, out]; queries, keys and values are
// one product.
#include <cmath>

#include "mase/models/hf_network.h"

namespace mase::gpt2_architecture {
namespace {

void build(HfNetwork& net) {
  if (net.flag("add_cross_attention", false)) net.refuse("'add_cross_attention' is not known");
  const std::string base = net.prefix("transformer.", "wte.weight");
  const HfHead head = net.head(HfHead::causal_lm);
  const int64_t width = net.whole("n_embd"), heads = net.whole("n_head"),
                layers = net.layers("n_layer"), inner = net.whole_or("n_inner", 4 * width),
                vocabulary = net.whole("vocab_size");
  const double eps = net.number("layer_norm_epsilon", 1e-5);
  const std::string act = net.word("activation_function", "gelu_new");
  if (width % heads != 0) net.refuse(fmt::format("{} features in {} heads", width, heads));
  net.begin_cache(layers, heads, width / heads);
  const auto linear = [&](const std::string& path, NodeId x, int64_t features) {
    net.turned(path + ".weight");
    return net.linear(path, x, features);
  };
  NodeId x = net.embedding(base + "wte", vocabulary, width, net.ids());
  x = net.add_positions(base + "wpe", x, net.whole_or("n_positions", 1024));
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("{}h.{}.", base, i);
    const NodeId all =
        linear(layer + "attn.c_attn", net.layer_norm(layer + "ln_1", x, eps), 3 * width);
    const auto part = [&](int64_t which) {
      return net.net().function("narrow", {all}, {2, which * width, width});
    };
    AttentionParts parts{part(0), part(1), part(2), heads, heads, width / heads};
    parts.causal = true;
    double scale = 1;
    if (net.flag("scale_attn_weights", true)) scale /= std::sqrt(static_cast<double>(parts.width));
    if (net.flag("scale_attn_by_inverse_layer_idx", false)) scale /= static_cast<double>(i + 1);
    parts.scale = scale;
    x = net.add(linear(layer + "attn.c_proj", net.attention(i, parts), width), x);
    NodeId y = linear(layer + "mlp.c_fc", net.layer_norm(layer + "ln_2", x, eps), inner);
    y = linear(layer + "mlp.c_proj", net.activation(act, y), width);
    x = net.add(x, y);
  }
  net.finish_causal(head, net.layer_norm(base + "ln_f", x, eps), base + "wte.weight", vocabulary);
}

GgufNames gguf_names() {
  const std::string layer = "transformer.h.#.";
  return {.architecture = "gpt2",
          .keys = {{"block_count", "n_layer"},
                   {"embedding_length", "n_embd"},
                   {"feed_forward_length", "n_inner"},
                   {"attention.head_count", "n_head"},
                   {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
                   {"context_length", "n_positions"}},
          .tensors = {{"token_embd", "transformer.wte"},
                      {"position_embd", "transformer.wpe"},
                      {"output_norm", "transformer.ln_f"},
                      {"output", "lm_head"},
                      {"blk.#.attn_norm", layer + "ln_1"},
                      {"blk.#.ffn_norm", layer + "ln_2"},
                      {"blk.#.attn_qkv", layer + "attn.c_attn"},
                      {"blk.#.attn_output", layer + "attn.c_proj"},
                      {"blk.#.ffn_up", layer + "mlp.c_fc"},
                      {"blk.#.ffn_down", layer + "mlp.c_proj"}},
          .turned = {"blk.#.attn_qkv", "blk.#.attn_output", "blk.#.ffn_up", "blk.#.ffn_down"}};
}

const Register<ArchitectureRecord> registered{
    {.name = "gpt2",
     .summary = "decoders with learned positions and one product for queries, keys and values",
     .inputs = {"input_ids", "attention_mask", "position_ids"},
     .causal = true,
     .build = build,
     .gguf = gguf_names()}};

}  // namespace
}  // namespace mase::gpt2_architecture
