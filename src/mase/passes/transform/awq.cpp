// SPDX-License-Identifier: Apache-2.0
// awq: columns of weights that meet large inputs made larger before they are rounded, and what
// makes those inputs divided (Lin et al., "AWQ: activation-aware weight quantization", 2024):
//   s = mean|x|^r, over the root of its largest times its smallest;  Q(W s) (x / s)
// The best r of a list is the one with the least error of the products themselves, as the inputs'
// second moments give it. (The reference looks at the result of attention for query, key and value
// and of the MLP for gate and up.)
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/formats/given.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/passes/channel_scaling.h"
#include "mase/passes/weight_method.h"

namespace mase::awq_pass {
namespace {

constexpr double least = 1e-4;  // as the reference has it

std::vector<double> scales_of(const std::vector<double>& magnitude, double ratio) {
  std::vector<double> scales;
  for (const double value : magnitude) scales.push_back(std::max(std::pow(value, ratio), least));
  const auto [low, high] = std::minmax_element(scales.begin(), scales.end());
  const double middle = std::sqrt(*low * *high);
  for (double& scale : scales) scale /= middle;
  return scales;
}

double loss_of(const Graph& graph, const ScalingSite& site, const SiteInputs& inputs,
               const std::vector<double>& scales) {
  double loss = 0;
  for (size_t i = 0; i < inputs.of.size(); ++i) {
    Graph tried = graph;
    const NodeId id = site.consumers[i];
    Module& module = *tried.module_of(tried.node(id));
    const std::string& name = op_of(graph, graph.node(id))->product->weight;
    const Quantizer* quantizer = module.quantization.find(name);
    if (!quantizer) continue;
    const Tensor original = *module.find(name);
    *module.find(name) = quantize(*quantizer, scaled_columns(site, graph, id, scales));
    loss += output_error(original, scaled_columns(site, tried, id, scales, true), *inputs.of[i],
                         inputs.threads);
  }
  return loss;
}

std::vector<double> best(const Graph& graph, const ScalingSite& site, const SiteInputs& inputs,
                         const std::vector<double>& ratios, std::string& note) {
  std::vector<double> magnitude(static_cast<size_t>(site.channels), 0.0);
  for (size_t i = 0; i < inputs.of.size(); ++i) {
    const std::vector<double> own =
        channel_statistic(site, graph, site.consumers[i], inputs.of[i]->mean_magnitude, false);
    for (size_t c = 0; c < own.size(); ++c)
      magnitude[c] += own[c] / static_cast<double>(inputs.of.size());
  }
  double least_loss = INFINITY, taken = 0;
  std::vector<double> chosen(magnitude.size(), 1.0);
  for (const double ratio : ratios) {
    const std::vector<double> scales = scales_of(magnitude, ratio);
    const double loss = loss_of(graph, site, inputs, scales);
    if (loss < least_loss) least_loss = loss, taken = ratio, chosen = scales;
  }
  note = fmt::format("ratio {}", taken);
  return chosen;
}

Value default_ratios() {
  List ratios;
  for (int i = 0; i < 20; ++i) ratios.push_back(i / 20.0);
  return ratios;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const std::vector<double> ratios = given_numbers(args["ratios"]);
  return scale_channels(
      graph, args, context,
      {"awq", [](const ScalingSite&) { return true; },
       [ratios](const Graph& of, const ScalingSite& site, const SiteInputs& inputs,
                std::string& note) { return best(of, site, inputs, ratios, note); }});
}

const Register<PassRecord> registered{{
    .name = "awq",
    .aliases = {"awq_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Weights that meet large inputs rounded more finely (AWQ)",
    .help = "Exact in real arithmetic, and checked. Runs behind quantize; clip_search or gptq may "
            "follow. A place that gets worse on held-out rows is left as it was.",
    .schema = scaling_method_schema(
        {list_field("ratios", "powers of the inputs' mean magnitude that are tried",
                    default_ratios())
             .checked([](const Value& value) -> std::optional<std::string> {
               if (value.as_list().empty()) return "expected at least one number";
               for (const Value& ratio : value.as_list())
                 if (!ratio.is_number() || !(ratio.as_double() >= 0) || ratio.as_double() > 1)
                   return "expected numbers from 0 to 1";
               return {};
             })}),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::awq_pass
