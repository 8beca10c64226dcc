// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/gptq_choice.h"

#include "mase/base/fields.h"

namespace mase {

WeightChoice gptq_choice(const WeightProblem& problem, GptqOptions options) {
  options.threads = problem.threads;
  WeightChoice choice{problem.weight, clipped_source(problem), ""};
  const FrozenGrid grid(problem.quantizer, choice.scales_from);
  const int64_t groups = problem.inputs.groups, each = problem.rows / groups, n = problem.columns;
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

GptqOptions gptq_options(const Value& args) {
  return {.activation_order = args["order"].as_string() == "activation",
          .damping = args["damping"].as_double(),
          .block = args["block_columns"].as_int()};
}

std::vector<Field> gptq_fields() {
  return {
      text_field("order", "columns with the largest inputs first, or as they stand", "activation",
                 {"activation", "natural"}),
      number_field("damping", "share of the mean diagonal that is added to the diagonal", 0.01)
          .between(0, 1e6),
      integer_field("block_columns", "columns whose feedback to later ones is added at once", 128)
          .between(1, 65536)};
}

}  // namespace mase
