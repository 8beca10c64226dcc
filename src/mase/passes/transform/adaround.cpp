// SPDX-License-Identifier: Apache-2.0
// Roundings that are learned. The error of the outputs is a quadratic form of the inputs' second
// moments, so each step sees all calibration rows at once and nothing is drawn:
//   loss = tr((w - w0) H (w - w0)'),   Adam on v
// adaround learns for every weight whether to round up or down (Nagel et al., "Up or down? Adaptive
// rounding for post-training quantization", 2020):
//   w = low + h(v) (high - low),  h = clamp(1.2 sigmoid(v) - 0.1, 0, 1),
//   loss + lambda sum(1 - |2 h - 1|^b),  b from 20 to 2
// flexround learns what every weight, and every row, is divided by before it is rounded (Lee et
// al., "FlexRound", 2023), so that a rounding may go further than to its neighbours:
//   w = round(w0 exp(-v - row)),  straight through
#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "mase/base/fields.h"
#include "mase/engine/kernels/double_products.h"
#include "mase/passes/weight_method.h"

namespace mase::adaround_pass {
namespace {

struct Options {
  int64_t steps = 500;
  double rate = 0.02, lambda = 10;
};

class Adam {
 public:
  Adam(size_t count, double rate) : first_(count, 0.0), second_(count, 0.0), rate_(rate) {}
  void next_step() { ++step_; }
  double change(size_t i, double gradient) {
    first_[i] = 0.9 * first_[i] + 0.1 * gradient;
    second_[i] = 0.999 * second_[i] + 0.001 * gradient * gradient;
    return rate_ * (first_[i] / (1 - std::pow(0.9, step_))) /
           (std::sqrt(second_[i] / (1 - std::pow(0.999, step_))) + 1e-8);
  }

 private:
  std::vector<double> first_, second_;
  double rate_;
  int step_ = 0;
};

// The rows of a weight that share their inputs.
struct Part {
  int64_t first = 0, rows = 0, columns = 0;  // first: value of the weight
  const Matrix& hessian;
  std::vector<double> weight;
  std::vector<double> scale;  // of each row's loss: of errors as large as rounding makes them
  int threads = 1;

  size_t size() const { return weight.size(); }
  double row_scale(size_t i) const { return scale[i / static_cast<size_t>(columns)]; }
  // D H for D = w - w0, and the loss over all rows.
  double products(const std::vector<double>& w, std::vector<double>& out) const {
    std::vector<double> difference(size());
    for (size_t i = 0; i < size(); ++i) difference[i] = w[i] - weight[i];
    kernels::multiply_doubles({.rows = rows,
                               .columns = columns,
                               .inner = columns,
                               .a = {.doubles = difference.data(), .row = columns},
                               .b = {.doubles = hessian.data(), .row = columns},
                               .out = out.data(),
                               .out_row = columns},
                              threads);
    double loss = 0;
    for (size_t i = 0; i < size(); ++i) loss += out[i] * difference[i] / row_scale(i);
    return loss;
  }
};

std::vector<double> up_or_down(const Part& part, const FrozenGrid& grid, const Options& options) {
  const size_t n = part.size();
  const auto columns = static_cast<double>(part.columns);
  std::vector<double> low(n), high(n), v(n), h(n), slope(n), w(n), product(n);
  for (size_t i = 0; i < n; ++i) {
    std::tie(low[i], high[i]) =
        grid.neighbours(part.first + static_cast<int64_t>(i), part.weight[i]);
    const double span = high[i] - low[i];
    const double share =
        span > 0 ? std::clamp((part.weight[i] - low[i]) / span, 0.001, 0.999) : 0.5;
    v[i] = -std::log(1.2 / (share + 0.1) - 1);
  }
  Adam adam(n, options.rate);
  const double warm = 0.2;
  for (int64_t step = 0; step < options.steps; ++step) {
    for (size_t i = 0; i < n; ++i) {
      const double s = 1 / (1 + std::exp(-v[i])), raw = 1.2 * s - 0.1;
      h[i] = std::clamp(raw, 0.0, 1.0);
      slope[i] = raw > 0 && raw < 1 ? 1.2 * s * (1 - s) : 0;
      w[i] = low[i] + h[i] * (high[i] - low[i]);
    }
    part.products(w, product);
    const double done = static_cast<double>(step) / static_cast<double>(options.steps);
    const double b = 20 - 18 * std::clamp((done - warm) / (1 - warm), 0.0, 1.0);
    adam.next_step();
    for (size_t i = 0; i < n; ++i) {
      double gradient = 2 * product[i] * (high[i] - low[i]) / part.row_scale(i);
      if (done >= warm) {
        const double side = 2 * h[i] - 1;
        gradient -=
            options.lambda / columns * b * std::pow(std::fabs(side), b - 1) * (side < 0 ? -2 : 2);
      }
      v[i] -= adam.change(i, gradient * slope[i]);
    }
  }
  for (size_t i = 0; i < n; ++i) w[i] = 1.2 / (1 + std::exp(-v[i])) - 0.1 >= 0.5 ? high[i] : low[i];
  return w;
}

std::vector<double> divided(const Part& part, const FrozenGrid& grid, const Options& options) {
  const size_t n = part.size(), columns = static_cast<size_t>(part.columns);
  std::vector<double> v(n, 0.0), row(static_cast<size_t>(part.rows), 0.0), w(n), product(n), best;
  double least = INFINITY;
  Adam adam(n + row.size(), options.rate);
  for (int64_t step = 0;; ++step) {
    for (size_t i = 0; i < n; ++i)
      w[i] = grid.round(part.first + static_cast<int64_t>(i),
                        part.weight[i] * std::exp(-v[i] - row[i / columns]));
    // A step too far is taken back: what comes out is the best that was seen.
    if (const double loss = part.products(w, product); loss < least) least = loss, best = w;
    if (step == options.steps) return best;
    adam.next_step();
    std::vector<double> of_row(row.size(), 0.0);
    for (size_t i = 0; i < n; ++i) {
      const double gradient =
          -2 * product[i] / part.row_scale(i) * part.weight[i] * std::exp(-v[i] - row[i / columns]);
      of_row[i / columns] += gradient;
      v[i] -= adam.change(i, gradient);
    }
    for (size_t r = 0; r < row.size(); ++r) row[r] -= adam.change(n + r, of_row[r]);
  }
}

using Learn = std::vector<double> (*)(const Part&, const FrozenGrid&, const Options&);

WeightChoice choose(const WeightProblem& problem, Learn learn, const Options& options) {
  WeightChoice choice{problem.weight, clipped_source(problem), ""};
  const FrozenGrid grid(problem.quantizer, choice.scales_from);
  const int64_t groups = problem.inputs.groups, each = problem.rows / groups;
  for (int64_t g = 0; g < groups; ++g) {
    Part part{g * each * problem.columns,
              each,
              problem.columns,
              problem.inputs.hessians[static_cast<size_t>(g)],
              {},
              std::vector<double>(static_cast<size_t>(each), 0.0),
              problem.threads};
    const float* from = problem.weight.data<float>() + part.first;
    part.weight.assign(from, from + each * problem.columns);
    for (size_t i = 0; i < part.size(); ++i) {
      const auto [low, high] =
          grid.neighbours(part.first + static_cast<int64_t>(i), part.weight[i]);
      const size_t column = i % static_cast<size_t>(part.columns);
      part.scale[i / static_cast<size_t>(part.columns)] +=
          part.hessian[column * static_cast<size_t>(part.columns) + column] * (high - low) *
          (high - low) / 12;
    }
    for (double& scale : part.scale)
      if (scale == 0) scale = 1;
    const std::vector<double> chosen = learn(part, grid, options);
    std::copy(chosen.begin(), chosen.end(), choice.weight.mutable_data<float>() + part.first);
  }
  return choice;
}

PassResult improve(Graph& graph, const Value& args, PassContext& context, const char* name,
                   Learn learn) {
  Options options{args["steps"].as_int(), args["learning_rate"].as_double()};
  if (!args["lambda"].is_null()) options.lambda = args["lambda"].as_double();
  return improve_weights(
      graph, args, context,
      {.name = name,
       .choose = [options,
                  learn](const WeightProblem& problem) { return choose(problem, learn, options); },
       .clips = clips_of(args["clip"])});
}

std::vector<Field> shared_fields(double rate) {
  return {integer_field("steps", "steps of Adam", 500).between(1, 1000000),
          number_field("learning_rate", "of Adam", rate).between(0, 10),
          clips_field("clip", "shares of a group's range that its scale may serve", List{1.0})};
}

std::vector<Field> adaround_fields() {
  std::vector<Field> fields = shared_fields(0.02);
  fields.push_back(
      number_field("lambda", "how strongly roundings are made to decide", 10).between(0, 1e9));
  return fields;
}

const Register<PassRecord> adaround{{
    .name = "adaround",
    .aliases = {"adaround_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Learned roundings of weights, up or down (AdaRound)",
    .help = "Runs behind quantize. Layer by layer, on the second moments of the inputs.",
    .schema = weight_method_schema(adaround_fields()),
    .run =
        [](Graph& graph, const Value& args, PassContext& context) {
          return improve(graph, args, context, "adaround", up_or_down);
        },
    .tolerance = -1,
}};

const Register<PassRecord> flexround{{
    .name = "flexround",
    .aliases = {"flexround_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Learned divisors of weights before they are rounded (FlexRound)",
    .help = "Runs behind quantize. Layer by layer, on the second moments of the inputs; the best "
            "roundings that were seen are taken.",
    .schema = weight_method_schema(shared_fields(0.003)),
    .run = [](Graph& graph, const Value& args,
              PassContext& context) { return improve(graph, args, context, "flexround", divided); },
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::adaround_pass
