// SPDX-License-Identifier: Apache-2.0
// What Llama's network and those after it have in common (Touvron et al., 2023): rotary positions,
// RMS norms, grouped queries, gated layers.
#pragma once

#include <functional>

#include "mase/models/hf_network.h"

namespace mase {

struct LlamaVariant {
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool head_norms = false;                            // of queries and keys
  std::function<int64_t(int64_t layer)> window = {};  // none: all earlier positions are seen
};

void build_llama(HfNetwork& net, const LlamaVariant& variant);

// The window of a layer where config.json has `layer_types`, or of the layers from
// `max_window_layers` on.
std::function<int64_t(int64_t layer)> listed_windows(const HfNetwork& net);

// `paired`: rows of queries and keys as files of that architecture have them.
GgufNames llama_gguf_names(const std::string& architecture, bool paired = false);

}  // namespace mase
