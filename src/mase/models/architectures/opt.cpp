// SPDX-License-Identifier: Apache-2.0
// OPT (Zhang et al., 2022): decoders with learned positions, the first two rows of which are
// unused.
#include "mase/models/hf_network.h"

namespace mase::opt_architecture {
namespace {

void build(HfNetwork& net) {
  const std::string base = net.has("decoder.embed_tokens.weight") ? "decoder." : "model.decoder.";
  const HfHead head = net.head(HfHead::causal_lm);
  const int64_t width = net.whole("hidden_size"), heads = net.whole("num_attention_heads"),
                layers = net.layers("num_hidden_layers"), inner = net.whole("ffn_dim"),
                vocabulary = net.whole("vocab_size"),
                narrow = net.whole_or("word_embed_proj_dim", width);
  const bool before = net.flag("do_layer_norm_before", true), bias = net.flag("enable_bias", true),
             affine = net.flag("layer_norm_elementwise_affine", true);
  constexpr double eps = 1e-5;
  constexpr int64_t unused = 2;
  const std::string act = net.word("activation_function", "relu");
  if (width % heads != 0) net.refuse(fmt::format("{} features in {} heads", width, heads));
  net.begin_cache(layers, heads, width / heads);
  NodeId x = net.embedding(base + "embed_tokens", vocabulary, narrow, net.ids());
  if (narrow != width) x = net.linear(base + "project_in", x, width, false);
  x = net.add_positions(base + "embed_positions", x, net.whole("max_position_embeddings") + unused,
                        unused);
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("{}layers.{}.", base, i);
    const auto norm = [&](const char* name, NodeId of) {
      return net.layer_norm(layer + name, of, eps, affine);
    };
    NodeId y = before ? norm("self_attn_layer_norm", x) : x;
    const auto part = [&](const char* which) {
      return net.linear(layer + "self_attn." + which, y, width, bias);
    };
    AttentionParts parts{part("q_proj"), part("k_proj"), part("v_proj"),
                         heads,          heads,          width / heads};
    parts.causal = true;
    x = net.add(x, net.linear(layer + "self_attn.out_proj", net.attention(i, parts), width, bias));
    if (!before) x = norm("self_attn_layer_norm", x);
    y = before ? norm("final_layer_norm", x) : x;
    y = net.activation(act, net.linear(layer + "fc1", y, inner, bias));
    x = net.add(x, net.linear(layer + "fc2", y, width, bias));
    if (!before) x = norm("final_layer_norm", x);
  }
  if (before && !net.flag("_remove_final_layer_norm", false))
    x = net.layer_norm(base + "final_layer_norm", x, eps, affine);
  if (narrow != width) x = net.linear(base + "project_out", x, narrow, false);
  net.finish_causal(head, x, base + "embed_tokens.weight", vocabulary);
}

const Register<ArchitectureRecord> registered{
    {.name = "opt",
     .summary = "decoders with learned positions that leave padding out",
     .inputs = {"input_ids", "attention_mask", "position_ids"},
     .causal = true,
     .build = build}};

}  // namespace
}  // namespace mase::opt_architecture
