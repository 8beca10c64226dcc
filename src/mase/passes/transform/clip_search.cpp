// SPDX-License-Identifier: Apache-2.0
// clip_search: weights clipped before they are rounded, so that the scale serves the many and not
// the largest. For every row the share of its largest magnitude that gives the least error of the
// outputs on calibration rows, and one share for all rows where scales are shared; any format.
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/formats/given.h"
#include "mase/passes/weight_method.h"

namespace mase::clip_search_pass {
namespace {

std::vector<double> row_errors(const WeightProblem& problem, const Tensor& other) {
  std::vector<double> errors, difference(static_cast<size_t>(problem.columns));
  for (int64_t r = 0; r < problem.rows; ++r) {
    for (int64_t c = 0; c < problem.columns; ++c) {
      const int64_t at = r * problem.columns + c;
      difference[static_cast<size_t>(c)] = static_cast<double>(other.data<float>()[at]) -
                                           static_cast<double>(problem.weight.data<float>()[at]);
    }
    errors.push_back(quadratic_form(difference.data(), problem.hessian_of(r), problem.columns));
  }
  return errors;
}

Tensor clipped(const WeightProblem& problem, const std::vector<double>& shares) {
  Tensor result = problem.weight;
  float* values = result.mutable_data<float>();
  for (int64_t r = 0; r < problem.rows; ++r) {
    float* row = values + r * problem.columns;
    float largest = 0;
    for (int64_t c = 0; c < problem.columns; ++c) largest = std::max(largest, std::fabs(row[c]));
    const auto limit = static_cast<float>(shares[static_cast<size_t>(r)] * largest);
    for (int64_t c = 0; c < problem.columns; ++c) row[c] = std::clamp(row[c], -limit, limit);
  }
  return result;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

WeightChoice choose(const WeightProblem& problem, const std::vector<double>& shares) {
  const auto rows = static_cast<size_t>(problem.rows);
  std::vector<double> best(rows, 1.0), least(rows, INFINITY);
  double best_of_all = 1, least_of_all = INFINITY;
  for (const double share : shares) {
    const std::vector<double> errors = row_errors(
        problem, quantize(problem.quantizer, clipped(problem, std::vector<double>(rows, share))));
    for (size_t r = 0; r < rows; ++r)
      if (errors[r] < least[r]) least[r] = errors[r], best[r] = share;
    if (sum(errors) < least_of_all) least_of_all = sum(errors), best_of_all = share;
  }
  // Where rows share a scale, the best of each row was not measured together.
  Tensor source = clipped(problem, best);
  Tensor chosen = quantize(problem.quantizer, source);
  if (sum(row_errors(problem, chosen)) > least_of_all) {
    source = clipped(problem, std::vector<double>(rows, best_of_all));
    chosen = quantize(problem.quantizer, source);
  }
  return {chosen, source, ""};
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  std::vector<double> shares = given_numbers(args["shares"]);
  if (std::find(shares.begin(), shares.end(), 1.0) == shares.end())
    shares.insert(shares.begin(), 1);
  return improve_weights(
      graph, args, context,
      {"clip_search", [shares](const WeightProblem& problem) { return choose(problem, shares); }});
}

const Register<PassRecord> registered{{
    .name = "clip_search",
    .aliases = {"clip_search_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Weights clipped where that lowers the error of outputs",
    .schema = weight_method_schema(
        {list_field("shares", "shares of a row's largest magnitude that are tried",
                    List{1.0, 0.995, 0.99, 0.97, 0.95, 0.93, 0.9, 0.8, 0.7, 0.6, 0.5})
             .checked([](const Value& value) -> std::optional<std::string> {
               for (const Value& share : value.as_list())
                 if (!share.is_number() || !(share.as_double() > 0) || share.as_double() > 1)
                   return "expected numbers above 0 and up to 1";
               return {};
             })}),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::clip_search_pass
