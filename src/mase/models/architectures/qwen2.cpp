// SPDX-License-Identifier: Apache-2.0
// Qwen 2 (Yang et al., 2024): Llama with biases of queries, keys and values.
#include "mase/models/llama_layers.h"

namespace mase::qwen2_architecture {
namespace {

void build(HfNetwork& net) { build_llama(net, {.qkv_bias = true, .window = listed_windows(net)}); }

const Register<ArchitectureRecord> registered{
    {.name = "qwen2",
     .summary = "Llama's layers, with biases of queries, keys and values",
     .inputs = {"input_ids", "attention_mask", "position_ids"},
     .causal = true,
     .build = build,
     .gguf = llama_gguf_names("qwen2")}};

}  // namespace
}  // namespace mase::qwen2_architecture
