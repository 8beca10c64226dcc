// SPDX-License-Identifier: Apache-2.0
// DistilBERT (Sanh et al., 2019): fewer of BERT's layers, without types of tokens and pooler.
#include "mase/models/hf_network.h"

namespace mase::distilbert_architecture {
namespace {

void build(HfNetwork& net) {
  const std::string base = net.prefix("distilbert.", "embeddings.word_embeddings.weight");
  const HfHead head = net.head(net.has("pre_classifier.weight") ? HfHead::sequence : HfHead::none);
  const int64_t width = net.whole("dim"), heads = net.whole("n_heads"),
                inner = net.whole("hidden_dim"), layers = net.layers("n_layers"),
                rows = net.whole("max_position_embeddings");
  constexpr double eps = 1e-12;
  const std::string act = net.word("activation", "gelu");
  if (width % heads != 0) net.refuse(fmt::format("{} features in {} heads", width, heads));
  if (net.tokens() > rows)
    throw Error(net.place(), fmt::format("the network takes up to {} token numbers, the data give "
                                         "{}",
                                         rows, net.tokens()));
  NodeId x =
      net.embedding(base + "embeddings.word_embeddings", net.whole("vocab_size"), width, net.ids());
  x = net.net().module(base + "embeddings.position_embeddings", "position_embedding",
                       {{"num_embeddings", rows}}, x);
  x = net.layer_norm(base + "embeddings.LayerNorm", x, eps);
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("{}transformer.layer.{}.", base, i);
    const auto part = [&](const char* which) {
      return net.linear(layer + "attention." + which, x, width);
    };
    AttentionParts parts{part("q_lin"), part("k_lin"), part("v_lin"), heads, heads, width / heads};
    NodeId y = net.linear(layer + "attention.out_lin", net.attention(i, parts), width);
    x = net.layer_norm(layer + "sa_layer_norm", net.add(y, x), eps);
    y = net.activation(act, net.linear(layer + "ffn.lin1", x, inner));
    x = net.layer_norm(layer + "output_layer_norm",
                       net.add(net.linear(layer + "ffn.lin2", y, width), x), eps);
  }
  if (head == HfHead::none) return net.finish({x});
  if (head == HfHead::sequence) {
    x = net.net().function("relu", {net.linear("pre_classifier", net.first_token(x), width)});
    return net.finish({net.linear("classifier", x, net.classes("classifier.weight"))});
  }
  if (head == HfHead::token)
    return net.finish({net.linear("classifier", x, net.classes("classifier.weight"))});
  if (head == HfHead::question) return net.finish({net.linear("qa_outputs", x, 2)});
  x = net.activation(act, net.linear("vocab_transform", x, width));
  x = net.layer_norm("vocab_layer_norm", x, eps);
  net.finish({net.vocabulary_head("vocab_projector", base + "embeddings.word_embeddings.weight", x,
                                  net.whole("vocab_size"), "vocab_projector.bias")});
}

const Register<ArchitectureRecord> registered{
    {.name = "distilbert",
     .summary = "BERT's layers without types of tokens and pooler",
     .inputs = {"input_ids", "attention_mask"},
     .build = build}};

}  // namespace
}  // namespace mase::distilbert_architecture
