// SPDX-License-Identifier: Apache-2.0
// BERT (Devlin et al., 2019): encoders with learned positions, which count padding too, and types
// of tokens. RoBERTa (Liu et al., 2019) is the same with other names and heads (roberta.cpp).
#include "mase/models/bert_layers.h"

namespace mase::bert_architecture {
namespace {

void build(HfNetwork& net) {
  const std::string base = net.prefix("bert.", "embeddings.word_embeddings.weight");
  const bool by_tensor = net.has("classifier.weight");
  const HfHead head = net.head(by_tensor ? HfHead::sequence : HfHead::none);
  const int64_t width = net.whole("hidden_size");
  NodeId x = bert_embeddings(net, base, {});
  x = bert_layers(net, base, x);
  const bool pooled = net.has(base + "pooler.dense.weight");
  const auto pool = [&] {
    return net.net().function("tanh",
                              {net.linear(base + "pooler.dense", net.first_token(x), width)});
  };
  if (head == HfHead::none && !pooled) return net.finish({x});
  if (head == HfHead::none) return net.finish({x, pool()});
  if (head == HfHead::sequence)
    return net.finish({net.linear("classifier", pool(), net.classes("classifier.weight"))});
  net.leave_out_unused(base + "pooler.");
  if (head == HfHead::token)
    return net.finish({net.linear("classifier", x, net.classes("classifier.weight"))});
  if (head == HfHead::question) return net.finish({net.linear("qa_outputs", x, 2)});
  net.leave_out_unused("cls.seq_relationship.");
  x = net.linear("cls.predictions.transform.dense", x, width);
  x = net.activation(net.word("hidden_act", "gelu"), x);
  x = net.layer_norm("cls.predictions.transform.LayerNorm", x, net.number("layer_norm_eps", 1e-12));
  net.finish(
      {net.vocabulary_head("cls.predictions.decoder", base + "embeddings.word_embeddings.weight", x,
                           net.whole("vocab_size"), "cls.predictions.bias")});
}

const Register<ArchitectureRecord> registered{
    {.name = "bert",
     .summary = "encoders with learned positions and types of tokens",
     .inputs = {"input_ids", "attention_mask", "token_type_ids", "position_ids"},
     .build = build}};

}  // namespace
}  // namespace mase::bert_architecture
