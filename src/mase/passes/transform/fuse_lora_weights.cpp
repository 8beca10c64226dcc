// SPDX-License-Identifier: Apache-2.0
// fuse_lora_weights: Linear + scale * B(A(x))  =>  Linear with W + scale B A. The bias and the
// number format stay; the layer stays frozen or not, as it was. A quantised layer rounds the sum of
// both from then on, which is another function: such layers are named.
#include "mase/passes/lora.h"
#include "mase/passes/pass.h"

namespace mase::fuse_lora_weights_pass {
namespace {

PassResult run(Graph& graph, const Value&, PassContext&) {
  List fused, rounded;
  Dict left;
  for (const LoraAdapter& adapter : lora_adapters(graph)) {
    const Module& layer = graph.modules().at(adapter.path);
    std::string obstacle = adapter.obstacle;
    if (obstacle.empty() && !layer.masks.empty())
      obstacle = "the layer is pruned, and its mask would hide parts of the adapter";
    if (!obstacle.empty()) {
      left.set(adapter.path, obstacle);
      continue;
    }
    fused.push_back(adapter.path);
    if (!layer.quantization.config.is_null()) rounded.push_back(adapter.path);
    fuse_lora(graph, adapter);
  }
  const bool changed = !fused.empty();
  return {Dict{{"fused", std::move(fused)},
               {"rounded_anew", std::move(rounded)},
               {"left_alone", std::move(left)}},
          changed};
}

const Register<PassRecord> registered{{
    .name = "fuse_lora_weights",
    .aliases = {"fuse_lora_weights_transform_pass", "fuse_lora"},
    .pass_kind = PassKind::transform,
    .summary = "Low-rank adapters added to the weights of their layers",
    .help =
        "Outputs in evaluation mode change by rounding only. Layers with a number format round\n"
        "the sum from then on (rounded_anew names them). Layers stay frozen if they were:\n"
        "freeze with frozen = false trains them again.",
    .run = run,
    .tolerance = 1e-6,
}};

}  // namespace
}  // namespace mase::fuse_lora_weights_pass
