// SPDX-License-Identifier: Apache-2.0
// What BERT's and RoBERTa's networks have in common.
#pragma once

#include <optional>
#include <string>

#include "mase/models/hf_network.h"

namespace mase {

// Tokens, types and positions; `positions` none: 0, 1, 2, ... whatever the mask says.
NodeId bert_embeddings(HfNetwork& net, const std::string& base, std::optional<NodeId> positions);
NodeId bert_layers(HfNetwork& net, const std::string& base, NodeId x);

}  // namespace mase
