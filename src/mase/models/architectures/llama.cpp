// SPDX-License-Identifier: Apache-2.0
// Llama (Touvron et al., 2023), and what others published in its form.
#include "mase/models/llama_layers.h"

namespace mase::llama_architecture {
namespace {

void build(HfNetwork& net) {
  const bool bias = net.flag("attention_bias", false);
  build_llama(net, {.qkv_bias = bias, .out_bias = bias, .mlp_bias = net.flag("mlp_bias", false)});
}

const Register<ArchitectureRecord> registered{
    {.name = "llama",
     .summary = "decoders with rotary positions, RMS norms and gated layers",
     .inputs = {"input_ids", "attention_mask", "position_ids"},
     .causal = true,
     .build = build,
     .gguf = llama_gguf_names("llama", true)}};

}  // namespace
}  // namespace mase::llama_architecture
