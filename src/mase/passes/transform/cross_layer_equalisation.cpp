// SPDX-License-Identifier: Apache-2.0
// cross_layer_equalisation: rows of a layer and the columns that take them given equal ranges, so
// that one scale serves a whole tensor (Nagel et al., "Data-free quantization through weight
// equalization and bias correction", 2019):
//   s = sqrt(r1 / r2) per channel,   W1 row / s, b1 / s,   W2 column * s
#include <cmath>

#include "mase/passes/channel_scaling.h"

namespace mase::cross_layer_equalisation_pass {
namespace {

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  ScalingMethod method;
  method.name = "cross_layer_equalisation";
  method.needs_inputs = false;
  method.wants = [](const ScalingSite& site) { return !site.from_norm; };
  method.scales = [](const Graph& of, const ScalingSite& site, const SiteInputs&, std::string&) {
    const std::vector<double> first = producer_ranges(site, of), second = consumer_ranges(site, of);
    std::vector<double> scales(first.size(), 1.0);  // dead channels stay
    for (size_t c = 0; c < scales.size(); ++c)
      if (first[c] > 0 && second[c] > 0) scales[c] = std::sqrt(first[c] / second[c]);
    return scales;
  };
  return scale_channels(graph, args, context, method);
}

const Register<PassRecord> registered{{
    .name = "cross_layer_equalisation",
    .aliases = {"cross_layer_equalisation_transform_pass", "cross_layer_equalization"},
    .pass_kind = PassKind::transform,
    .summary = "Equal ranges of channels in layers that follow each other",
    .help = "Exact in real arithmetic, and checked. Fold batch norms first (fuse_batch_norm). Each "
            "pair once, from the input on; run it again for more.",
    .schema = scaling_method_schema(),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::cross_layer_equalisation_pass
