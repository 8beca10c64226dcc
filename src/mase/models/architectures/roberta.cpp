// SPDX-License-Identifier: Apache-2.0
// RoBERTa (Liu et al., 2019): BERT's layers; positions count the tokens that are no padding and
// begin behind the padding's number.
#include "mase/models/bert_layers.h"

namespace mase::roberta_architecture {
namespace {

NodeId positions_of(HfNetwork& net) {
  if (const auto given = net.input("position_ids")) return *given;
  const Value& given = net.config()["pad_token_id"];
  const int64_t padding = given.is_int() ? given.as_int() : 1;
  NetworkBuilder& graph = net.net();
  const NodeId real = graph.function("mul", {graph.function("ne", {net.ids()}, {padding})}, {1});
  const NodeId count = graph.function("mul", {graph.function("cumsum", {real}, {1}), real});
  return graph.function("add", {count}, {padding});
}

void build(HfNetwork& net) {
  const std::string base = net.prefix("roberta.", "embeddings.word_embeddings.weight");
  const HfHead head =
      net.head(net.has("classifier.dense.weight") ? HfHead::sequence : HfHead::none);
  const int64_t width = net.whole("hidden_size");
  NodeId x = bert_embeddings(net, base, positions_of(net));
  x = bert_layers(net, base, x);
  if (head == HfHead::none) {
    if (!net.has(base + "pooler.dense.weight")) return net.finish({x});
    const NodeId pooled = net.linear(base + "pooler.dense", net.first_token(x), width);
    return net.finish({x, net.net().function("tanh", {pooled})});
  }
  net.leave_out_unused(base + "pooler.");
  if (head == HfHead::sequence) {
    x = net.net().function("tanh", {net.linear("classifier.dense", net.first_token(x), width)});
    return net.finish(
        {net.linear("classifier.out_proj", x, net.classes("classifier.out_proj.weight"))});
  }
  if (head == HfHead::token)
    return net.finish({net.linear("classifier", x, net.classes("classifier.weight"))});
  if (head == HfHead::question) return net.finish({net.linear("qa_outputs", x, 2)});
  x = net.net().function("gelu", {net.linear("lm_head.dense", x, width)});
  x = net.layer_norm("lm_head.layer_norm", x, net.number("layer_norm_eps", 1e-5));
  net.finish({net.vocabulary_head("lm_head.decoder", base + "embeddings.word_embeddings.weight", x,
                                  net.whole("vocab_size"), "lm_head.bias")});
}

const Register<ArchitectureRecord> registered{
    {.name = "roberta",
     .aliases = {"xlm-roberta", "camembert"},
     .summary = "BERT's layers, with positions that leave padding out",
     .inputs = {"input_ids", "attention_mask", "token_type_ids", "position_ids"},
     .build = build}};

}  // namespace
}  // namespace mase::roberta_architecture
