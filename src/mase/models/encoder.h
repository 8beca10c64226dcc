// SPDX-License-Identifier: Apache-2.0
// The layers of an encoder as BERT's (Devlin et al., 2019), with Hugging Face's parameter names.
#pragma once

#include <string>

#include "mase/models/network_builder.h"

namespace mase {

struct EncoderSizes {
  int64_t layers, width, heads, inner;
  double eps = 1e-12;
  std::string activation = "gelu";
  std::string approximate = "none";  // of gelu
};

// [N, S, heads * d] => [N, heads, S, d], and back
NodeId split_heads(NetworkBuilder& net, NodeId x, int64_t heads);
NodeId join_heads(NetworkBuilder& net, NodeId x);

// Layers "<prefix>encoder.layer.<i>." one behind the other.
NodeId encoder_layers(NetworkBuilder& net, const std::string& prefix, NodeId x,
                      const EncoderSizes& sizes);

}  // namespace mase
