// SPDX-License-Identifier: Apache-2.0
// gptq: chooses the roundings of quantised weights column by column, each making good the errors of
// those before it on calibration rows (Frantar et al., 2023). Any number format; its scales are
// those of the weights before (static groups), so that inference needs no order of columns.
#include "mase/base/fields.h"
#include "mase/passes/gptq_solver.h"
#include "mase/passes/weight_method.h"

namespace mase::gptq_pass {
namespace {

WeightChoice choose(const WeightProblem& problem, const GptqOptions& options) {
  const FrozenGrid grid(problem.quantizer, problem.weight);
  const int64_t groups = problem.inputs.groups, each = problem.rows / groups, n = problem.columns;
  WeightChoice choice{problem.weight, problem.weight, ""};
  float* out = choice.weight.mutable_data<float>();
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = g * each * n;
    std::vector<double> work(problem.weight.data<float>() + first,
                             problem.weight.data<float>() + first + each * n);
    const GptqRule rule{[&](int64_t row, int64_t column, double value) {
      return grid.round(first + row * n + column, value);
    }};
    if (!gptq_solve(work, each, n, problem.inputs.hessians[static_cast<size_t>(g)], rule, options))
      return {{}, {}, "left alone: its inputs' second moments are singular; raise damping"};
    for (size_t i = 0; i < work.size(); ++i)
      out[first + static_cast<int64_t>(i)] = static_cast<float>(work[i]);
  }
  return choice;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const GptqOptions options{args["order"].as_string() == "activation", args["damping"].as_double(),
                            args["block_columns"].as_int()};
  return improve_weights(graph, args, context, {"gptq", [options](const WeightProblem& problem) {
                                                  return choose(problem, options);
                                                }});
}

const Register<PassRecord> registered{{
    .name = "gptq",
    .aliases = {"gptq_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Roundings of weights that make good each other's errors (GPTQ)",
    .help = "Runs behind quantize, on every quantised linear layer and convolution. A layer whose "
            "error on held-out rows would rise is left as it was.",
    .schema = weight_method_schema(
        {text_field("order", "columns with the largest inputs first, or as they stand",
                    "activation", {"activation", "natural"}),
         number_field("damping", "share of the mean diagonal that is added to the diagonal", 0.01)
             .between(0, 1e6),
         integer_field("block_columns", "columns whose feedback to later ones is added at once",
                       128)
             .between(1, 65536)}),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::gptq_pass
