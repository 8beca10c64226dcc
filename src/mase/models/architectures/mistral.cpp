// SPDX-License-Identifier: Apache-2.0
// Mistral (Jiang et al., 2023): Llama with windows that slide.
#include "mase/models/llama_layers.h"

namespace mase::mistral_architecture {
namespace {

void build(HfNetwork& net) {
  LlamaVariant variant;
  if (!net.config()["sliding_window"].is_null()) {
    const int64_t window = net.whole("sliding_window");
    variant.window = [window](int64_t) { return window; };
  }
  build_llama(net, variant);
}

const Register<ArchitectureRecord> registered{
    {.name = "mistral",
     .summary = "Llama's layers, with windows that slide",
     .inputs = {"input_ids", "attention_mask", "position_ids"},
     .causal = true,
     .build = build}};

}  // namespace
}  // namespace mase::mistral_architecture
