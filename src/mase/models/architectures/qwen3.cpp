// SPDX-License-Identifier: Apache-2.0
// Qwen 3 (Yang et al., 2025): Llama with norms of each head's queries and keys.
#include "mase/models/llama_layers.h"

namespace mase::qwen3_architecture {
namespace {

void build(HfNetwork& net) {
  const bool bias = net.flag("attention_bias", false);
  build_llama(
      net, {.qkv_bias = bias, .out_bias = bias, .head_norms = true, .window = listed_windows(net)});
}

const Register<ArchitectureRecord> registered{
    {.name = "qwen3",
     .summary = "Llama's layers, with norms of queries and keys",
     .inputs = {"input_ids", "attention_mask", "position_ids"},
     .causal = true,
     .build = build,
     .gguf = llama_gguf_names("qwen3")}};

}  // namespace
}  // namespace mase::qwen3_architecture
