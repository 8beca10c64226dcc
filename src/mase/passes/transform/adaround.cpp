// SPDX-License-Identifier: Apache-2.0
// adaround: learns for every weight whether to round up or down (Nagel et al., "Up or down?
// Adaptive rounding for post-training quantization", 2020). The error of the outputs is a quadratic
// form of the inputs' second moments, so each step sees all calibration rows at once and nothing is
// drawn:
//   w = low + h(v) (high - low),  h = clamp(1.2 sigmoid(v) - 0.1, 0, 1),
//   loss = tr((w - w0) H (w - w0)') + lambda sum(1 - |2 h - 1|^b),  b from 20 to 2
#include <algorithm>
#include <cmath>
#include <tuple>

#include "mase/base/fields.h"
#include "mase/passes/weight_method.h"

namespace mase::adaround_pass {
namespace {

struct Options {
  int64_t steps = 500;
  double rate = 0.02, lambda = 10;
};

// One row: its weights, the numbers on both sides, and the moments of its inputs.
std::vector<double> learn_row(const std::vector<double>& weight, const std::vector<double>& low,
                              const std::vector<double>& high, const Matrix& hessian,
                              const Options& options) {
  const size_t n = weight.size();
  std::vector<double> v(n), first(n, 0.0), second(n, 0.0), h(n), slope(n), difference(n);
  double scale = 0;  // of the loss, so that lambda means the same for all layers
  for (size_t i = 0; i < n; ++i) {
    const double span = high[i] - low[i];
    const double share = span > 0 ? std::clamp((weight[i] - low[i]) / span, 0.001, 0.999) : 0.5;
    v[i] = -std::log(1.2 / (share + 0.1) - 1);
    scale += hessian[i * n + i] * span * span / 12;
  }
  if (scale == 0) scale = 1;
  const double warm = 0.2;
  for (int64_t step = 0; step < options.steps; ++step) {
    for (size_t i = 0; i < n; ++i) {
      const double s = 1 / (1 + std::exp(-v[i])), raw = 1.2 * s - 0.1;
      h[i] = std::clamp(raw, 0.0, 1.0);
      slope[i] = raw > 0 && raw < 1 ? 1.2 * s * (1 - s) : 0;
      difference[i] = low[i] + h[i] * (high[i] - low[i]) - weight[i];
    }
    const double done = static_cast<double>(step) / static_cast<double>(options.steps);
    const double b = 20 - 18 * std::clamp((done - warm) / (1 - warm), 0.0, 1.0);
    for (size_t i = 0; i < n; ++i) {
      double inner = 0;
      for (size_t j = 0; j < n; ++j) inner += hessian[i * n + j] * difference[j];
      double gradient = 2 * inner * (high[i] - low[i]) / scale;
      if (done >= warm) {
        const double side = 2 * h[i] - 1;
        gradient -= options.lambda / static_cast<double>(n) * b * std::pow(std::fabs(side), b - 1) *
                    (side < 0 ? -2 : 2);
      }
      gradient *= slope[i];
      first[i] = 0.9 * first[i] + 0.1 * gradient;
      second[i] = 0.999 * second[i] + 0.001 * gradient * gradient;
      const double t = static_cast<double>(step + 1);
      v[i] -= options.rate * (first[i] / (1 - std::pow(0.9, t))) /
              (std::sqrt(second[i] / (1 - std::pow(0.999, t))) + 1e-8);
    }
  }
  std::vector<double> chosen(n);
  for (size_t i = 0; i < n; ++i)
    chosen[i] = 1.2 / (1 + std::exp(-v[i])) - 0.1 >= 0.5 ? high[i] : low[i];
  return chosen;
}

WeightChoice choose(const WeightProblem& problem, const Options& options) {
  const FrozenGrid grid(problem.quantizer, problem.weight);
  WeightChoice choice{problem.weight, problem.weight, ""};
  const auto n = static_cast<size_t>(problem.columns);
  float* out = choice.weight.mutable_data<float>();
  std::vector<double> weight(n), low(n), high(n);
  for (int64_t r = 0; r < problem.rows; ++r) {
    for (size_t c = 0; c < n; ++c) {
      const int64_t at = r * problem.columns + static_cast<int64_t>(c);
      weight[c] = problem.weight.data<float>()[at];
      std::tie(low[c], high[c]) = grid.neighbours(at, weight[c]);
    }
    const std::vector<double> chosen = learn_row(weight, low, high, problem.hessian_of(r), options);
    for (size_t c = 0; c < n; ++c)
      out[r * problem.columns + static_cast<int64_t>(c)] = static_cast<float>(chosen[c]);
  }
  return choice;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const Options options{args["steps"].as_int(), args["learning_rate"].as_double(),
                        args["lambda"].as_double()};
  return improve_weights(
      graph, args, context,
      {"adaround", [options](const WeightProblem& problem) { return choose(problem, options); }});
}

const Register<PassRecord> registered{{
    .name = "adaround",
    .aliases = {"adaround_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Learned roundings of weights, up or down (AdaRound)",
    .help = "Runs behind quantize. Layer by layer, on the second moments of the inputs.",
    .schema = weight_method_schema(
        {integer_field("steps", "steps of Adam", 500).between(1, 1000000),
         number_field("learning_rate", "of Adam", 0.02).between(0, 10),
         number_field("lambda", "how strongly roundings are made to decide", 10).between(0, 1e9)}),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::adaround_pass
