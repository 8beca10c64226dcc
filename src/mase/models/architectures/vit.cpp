// SPDX-License-Identifier: Apache-2.0
// ViT (Dosovitskiy et al., 2021): an image in patches, as tokens behind one that stands for all.
#include "mase/models/hf_network.h"

namespace mase::vit_architecture {
namespace {

void build(HfNetwork& net) {
  const std::string base = net.prefix("vit.", "embeddings.cls_token");
  const HfHead head = net.head(net.has("classifier.weight") ? HfHead::sequence : HfHead::none);
  NetworkBuilder& graph = net.net();
  const int64_t width = net.whole("hidden_size"), heads = net.whole("num_attention_heads"),
                layers = net.layers("num_hidden_layers"), inner = net.whole("intermediate_size"),
                patch = net.whole_or("patch_size", 16);
  const bool bias = net.flag("qkv_bias", true);
  const double eps = net.number("layer_norm_eps", 1e-12);
  const std::string act = net.word("hidden_act", "gelu");
  if (width % heads != 0) net.refuse(fmt::format("{} features in {} heads", width, heads));
  const NodeId image = *net.input("pixel_values");
  const Shape wanted = {1, net.whole_or("num_channels", 3), net.whole_or("image_size", 224),
                        net.whole_or("image_size", 224)};
  if (graph.shape(image) != wanted)
    throw Error(net.place(), fmt::format("the network takes images of {}, got {}",
                                         shape_text(wanted), shape_text(graph.shape(image))));
  NodeId x =
      graph.conv(base + "embeddings.patch_embeddings.projection", image, width, patch, patch);
  const Shape tiles = graph.shape(x);
  const int64_t count = tiles[2] * tiles[3];
  x = graph.function("reshape", {x}, {Value(List{-1, width, count})});
  x = graph.function("transpose", {x}, {1, 2});
  // [cls, patches] + positions = [0, patches] + ([cls, 0] + positions): nothing is repeated for the
  // batch.
  x = graph.function("pad", {x}, {Value(List{0, 0, 1, 0})});
  const NodeId cls = graph.parameter(base + "embeddings.cls_token", {1, 1, width}, 0.02);
  NodeId all = graph.function("pad", {cls}, {Value(List{0, 0, 0, count})});
  all = net.add(
      all, graph.parameter(base + "embeddings.position_embeddings", {1, count + 1, width}, 0.02));
  x = net.add(x, all);
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("{}encoder.layer.{}.", base, i);
    NodeId y = net.layer_norm(layer + "layernorm_before", x, eps);
    const auto part = [&](const char* which) {
      return net.linear(layer + "attention.attention." + which, y, width, bias);
    };
    AttentionParts parts{part("query"), part("key"), part("value"), heads, heads, width / heads};
    x = net.add(net.linear(layer + "attention.output.dense", net.attention(i, parts), width), x);
    y = net.layer_norm(layer + "layernorm_after", x, eps);
    y = net.activation(act, net.linear(layer + "intermediate.dense", y, inner));
    x = net.add(net.linear(layer + "output.dense", y, width), x);
  }
  x = net.layer_norm(base + "layernorm", x, eps);
  if (head == HfHead::sequence)
    return net.finish(
        {net.linear("classifier", net.first_token(x), net.classes("classifier.weight"))});
  if (head != HfHead::none) net.refuse("the head that 'architectures' names is not known");
  if (!net.has(base + "pooler.dense.weight")) return net.finish({x});
  const NodeId pooled = net.linear(base + "pooler.dense", net.first_token(x),
                                   net.whole_or("pooler_output_size", width));
  net.finish({x, net.activation(net.word("pooler_act", "tanh"), pooled)});
}

const Register<ArchitectureRecord> registered{{.name = "vit",
                                               .summary = "images in patches as tokens",
                                               .inputs = {"pixel_values"},
                                               .build = build}};

}  // namespace
}  // namespace mase::vit_architecture
