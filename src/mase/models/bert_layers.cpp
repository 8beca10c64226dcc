// SPDX-License-Identifier: Apache-2.0
#include "mase/models/bert_layers.h"

#include "mase/base/text.h"

namespace mase {

NodeId bert_embeddings(HfNetwork& net, const std::string& base, std::optional<NodeId> positions) {
  if (net.flag("is_decoder", false)) net.refuse("'is_decoder' is not known for encoders");
  const std::string kind = net.word("position_embedding_type", "absolute");
  if (kind != "absolute")
    net.refuse(fmt::format("positions '{}' are not known", printable(kind)),
               "encoders with absolute positions are read");
  const std::string from = base + "embeddings.";
  const int64_t width = net.whole("hidden_size"), rows = net.whole("max_position_embeddings");
  NodeId x = net.embedding(from + "word_embeddings", net.whole("vocab_size"), width, net.ids());
  if (!positions) positions = net.input("position_ids");
  if (positions) {
    x = net.add(x, net.embedding(from + "position_embeddings", rows, width, *positions));
  } else {
    if (net.tokens() > rows)
      throw Error(net.place(), fmt::format("the network takes up to {} token numbers, the data "
                                           "give {}",
                                           rows, net.tokens()));
    x = net.net().module(from + "position_embeddings", "position_embedding",
                         {{"num_embeddings", rows}}, x);
  }
  const int64_t kinds = net.whole("type_vocab_size");
  if (const auto types = net.input("token_type_ids")) {
    x = net.add(x, net.embedding(from + "token_type_embeddings", kinds, width, *types));
  } else {  // the first kind everywhere
    const NodeId table =
        net.net().parameter(from + "token_type_embeddings.weight", {kinds, width}, 0.02);
    x = net.add(x, net.net().function("getitem", {table}, {0}));
  }
  return net.layer_norm(from + "LayerNorm", x, net.number("layer_norm_eps", 1e-12));
}

NodeId bert_layers(HfNetwork& net, const std::string& base, NodeId x) {
  const int64_t width = net.whole("hidden_size"), heads = net.whole("num_attention_heads"),
                inner = net.whole("intermediate_size"), layers = net.layers("num_hidden_layers");
  const double eps = net.number("layer_norm_eps", 1e-12);
  const std::string act = net.word("hidden_act", "gelu");
  if (width % heads != 0)
    net.refuse(fmt::format("{} layers, {} features in {} heads", layers, width, heads));
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("{}encoder.layer.{}.", base, i);
    const auto part = [&](const char* which) {
      return net.linear(layer + "attention.self." + which, x, width);
    };
    AttentionParts parts{part("query"), part("key"), part("value"), heads, heads, width / heads};
    NodeId y = net.linear(layer + "attention.output.dense", net.attention(i, parts), width);
    x = net.layer_norm(layer + "attention.output.LayerNorm", net.add(y, x), eps);
    y = net.activation(act, net.linear(layer + "intermediate.dense", x, inner));
    y = net.linear(layer + "output.dense", y, width);
    x = net.layer_norm(layer + "output.LayerNorm", net.add(y, x), eps);
  }
  return x;
}

}  // namespace mase
