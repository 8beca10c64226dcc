// SPDX-License-Identifier: Apache-2.0
// Correlations of predicted numbers and targets, averaged over the outputs: Pearson's of the
// numbers, Spearman's of their ranks (equal numbers share the mean of theirs). Not a number where
// all are equal.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "mase/train/metric.h"

namespace mase::correlation_metric {
namespace {

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  double both = 0, squares_a = 0, squares_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean_a) * (b[i] - mean_b);
    squares_a += (a[i] - mean_a) * (a[i] - mean_a);
    squares_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  if (!(squares_a > 0) || !(squares_b > 0)) return std::numeric_limits<double>::quiet_NaN();
  return both / (std::sqrt(squares_a) * std::sqrt(squares_b));
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (size_t i = first; i <= last; ++i) result[order[i]] = static_cast<double>(first + last) / 2;
    first = last + 1;
  }
  return result;
}

template <bool by_rank>
Value compute(const MetricInput& input) {
  double sum = 0;
  for (int64_t o = 0; o < input.outputs; ++o) {
    std::vector<double> got, wanted;
    for (int64_t row = 0; row < input.rows; ++row) {
      got.push_back(input.logits[row * input.outputs + o]);
      wanted.push_back(input.targets[row * input.outputs + o]);
    }
    // What is not a number has no rank.
    const bool numbers =
        std::none_of(got.begin(), got.end(), [](double x) { return std::isnan(x); });
    if (!numbers) return std::numeric_limits<double>::quiet_NaN();
    sum += by_rank ? correlation(ranks(got), ranks(wanted)) : correlation(got, wanted);
  }
  return sum / static_cast<double>(input.outputs);
}

const Register<MetricRecord> registered{{.name = "pearson",
                                         .summary = "correlation of predictions and targets",
                                         .for_classes = false,
                                         .for_numbers = true,
                                         .compute = compute<false>}};
const Register<MetricRecord> spearman{{.name = "spearman",
                                       .summary = "correlation of their ranks",
                                       .for_classes = false,
                                       .for_numbers = true,
                                       .compute = compute<true>}};

}  // namespace
}  // namespace mase::correlation_metric
