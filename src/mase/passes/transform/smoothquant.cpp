// SPDX-License-Identifier: Apache-2.0
// smoothquant: large channels of activations made smaller and the weights that take them larger, so
// that activations can be rounded (Xiao et al., 2023):
//   s = max|x|^alpha / max|W|^(1 - alpha) per channel,   norm / s,   W * s
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/passes/channel_scaling.h"

namespace mase::smoothquant_pass {
namespace {

constexpr double least = 1e-5;  // as the reference has it

std::vector<double> scales(const Graph& graph, const ScalingSite& site, const SiteInputs& inputs,
                           double alpha) {
  std::vector<double> x(static_cast<size_t>(site.channels), 0.0);
  for (size_t i = 0; i < inputs.of.size(); ++i) {
    const std::vector<double> own =
        channel_statistic(site, graph, site.consumers[i], inputs.of[i]->largest, true);
    for (size_t c = 0; c < x.size(); ++c) x[c] = std::max(x[c], own[c]);
  }
  const std::vector<double> w = consumer_ranges(site, graph);
  std::vector<double> result(x.size());
  for (size_t c = 0; c < x.size(); ++c)
    result[c] = std::max(
        least, std::pow(std::max(x[c], least), alpha) / std::pow(std::max(w[c], least), 1 - alpha));
  return result;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const double alpha = args["alpha"].as_double();
  const bool products = args["from"].as_string() == "all";
  return scale_channels(
      graph, args, context,
      {"smoothquant", [products](const ScalingSite& site) { return site.from_norm || products; },
       [alpha](const Graph& of, const ScalingSite& site, const SiteInputs& inputs, std::string&) {
         return scales(of, site, inputs, alpha);
       }});
}

const Register<PassRecord> registered{{
    .name = "smoothquant",
    .aliases = {"smoothquant_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Large channels of activations moved into weights (SmoothQuant)",
    .help = "Exact in real arithmetic, and checked. Runs behind quantize, whose formats judge it: "
            "where they round a layer worse on held-out rows, it is left as it was.",
    .schema = scaling_method_schema(
        {number_field("alpha", "0: weights are evened out, 1: activations", 0.5).between(0, 1),
         text_field("from", "scale what norms give, or what any layer gives", "norms",
                    {"norms", "all"})}),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::smoothquant_pass
