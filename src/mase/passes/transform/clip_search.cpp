// SPDX-License-Identifier: Apache-2.0
// clip_search: ranges of weights drawn in before scales are taken from them, so that a scale serves
// the many and not the largest. For every group of values with a scale the share of its range that
// gives the least error of the outputs on calibration rows; any format with scales. The scales are
// written into the layer's format where it can say them, and the weights stay, so that gptq or
// adaround may choose roundings on this grid; block formats get weights that are cut.
#include "mase/formats/given.h"
#include "mase/passes/weight_method.h"

namespace mase::clip_search_pass {
namespace {

WeightChoice choose(const WeightProblem& problem) {
  const Tensor source = clipped_source(problem);
  const FrozenGrid grid(problem.quantizer, source);
  return {rounded_to(grid, problem.weight, problem.threads), source, "", /*stays=*/true};
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  return improve_weights(
      graph, args, context,
      {.name = "clip_search", .choose = choose, .clips = clips_of(args["shares"])});
}

const Register<PassRecord> registered{{
    .name = "clip_search",
    .aliases = {"clip_search_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Ranges of weights drawn in where that lowers the error of outputs",
    .help = "Runs behind quantize; gptq or adaround may follow, on the grid that is found.",
    .schema = weight_method_schema(
        {clips_field("shares", "shares of a group's range that are tried",
                     List{1.0, 0.975, 0.95, 0.925, 0.9, 0.875, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5})}),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::clip_search_pass
