// SPDX-License-Identifier: Apache-2.0
#include "mase/models/encoder.h"

namespace mase {

NodeId split_heads(NetworkBuilder& net, NodeId x, int64_t heads) {
  const Shape shape = net.shape(x);
  x = net.function("reshape", {x}, {Value(List{-1, shape[1], heads, shape[2] / heads})});
  return net.function("transpose", {x}, {1, 2});
}

NodeId join_heads(NetworkBuilder& net, NodeId x) {
  x = net.function("transpose", {x}, {1, 2});
  const Shape shape = net.shape(x);
  return net.function("reshape", {x}, {Value(List{-1, shape[1], shape[2] * shape[3]})});
}

NodeId encoder_layers(NetworkBuilder& net, const std::string& prefix, NodeId x,
                      const EncoderSizes& s) {
  const auto norm = [&](const std::string& path, NodeId of) {
    return net.module(path, "layer_norm",
                      {{"normalized_shape", net.shape(of).back()}, {"eps", s.eps}}, of);
  };
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string layer = fmt::format("{}encoder.layer.{}.", prefix, i);
    const auto part = [&](const char* which) {
      return split_heads(net, net.linear(layer + "attention.self." + which, x, s.width), s.heads);
    };
    const NodeId q = part("query"), k = part("key"), v = part("value");
    NodeId y = join_heads(net, net.function("scaled_dot_product_attention", {q, k, v}));
    y = net.linear(layer + "attention.output.dense", y, s.width);
    x = norm(layer + "attention.output.LayerNorm", net.function("add", {y, x}));
    y = net.linear(layer + "intermediate.dense", x, s.inner);
    y = s.approximate == "none" ? net.function(s.activation, {y})
                                : net.function(s.activation, {y}, {s.approximate});
    y = net.linear(layer + "output.dense", y, s.width);
    x = norm(layer + "output.LayerNorm", net.function("add", {y, x}));
  }
  return x;
}

}  // namespace mase
