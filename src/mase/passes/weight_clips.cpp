// SPDX-License-Identifier: Apache-2.0
// Ranges cut before scales are taken from them, so that a scale serves the many and not the
// largest: a part of the grid, which any method that rounds to it can work with.
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/engine/kernels/parallel.h"
#include "mase/formats/given.h"
#include "mase/passes/weight_method.h"

namespace mase {
namespace {

struct GroupRange {
  float low = 0, high = 0;
};

Tensor drawn_in(const Tensor& weight, const FrozenGrid& grid, const std::vector<GroupRange>& ranges,
                const std::vector<double>& shares) {
  Tensor source = weight;
  float* values = source.mutable_data<float>();
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const auto g = static_cast<size_t>(grid.group_of(i));
    values[i] = std::clamp(values[i], static_cast<float>(ranges[g].low * shares[g]),
                           static_cast<float>(ranges[g].high * shares[g]));
  }
  return source;
}

// Errors of outputs by group. Where a row has several groups, each counts by itself.
std::vector<double> group_errors(const WeightProblem& problem, const FrozenGrid& grid,
                                 const Tensor& rounded) {
  const int64_t n = problem.columns;
  std::vector<double> errors(static_cast<size_t>(grid.groups()), 0.0);
  bool whole_rows = true;
  for (int64_t i = 0; i < rounded.numel() && whole_rows; ++i)
    whole_rows = grid.group_of(i) == grid.group_of(i / n * n);
  if (whole_rows) {
    const std::vector<double> rows =
        row_errors(problem.weight, rounded, problem.inputs, problem.threads);
    for (int64_t r = 0; r < problem.rows; ++r)
      errors[static_cast<size_t>(grid.group_of(r * n))] += rows[static_cast<size_t>(r)];
    return errors;
  }
  struct Part {
    int64_t first, last;  // columns of a row
    double error;
  };
  std::vector<std::vector<Part>> parts(static_cast<size_t>(problem.rows));
  kernels::for_each_piece(problem.rows, problem.threads, [&](int64_t r) {
    const Matrix& h = problem.hessian_of(r);
    std::vector<double> d(static_cast<size_t>(n));
    for (int64_t c = 0; c < n; ++c)
      d[static_cast<size_t>(c)] = static_cast<double>(rounded.data<float>()[r * n + c]) -
                                  static_cast<double>(problem.weight.data<float>()[r * n + c]);
    for (int64_t first = 0; first < n;) {
      int64_t last = first + 1;
      while (last < n && grid.group_of(r * n + last) == grid.group_of(r * n + first)) ++last;
      double error = 0;
      for (int64_t i = first; i < last; ++i) {
        const double* row = h.data() + i * n;
        double inner = 0;
        for (int64_t j = first; j < last; ++j) inner += row[j] * d[static_cast<size_t>(j)];
        error += inner * d[static_cast<size_t>(i)];
      }
      parts[static_cast<size_t>(r)].push_back({first, last, error});
      first = last;
    }
  });
  for (int64_t r = 0; r < problem.rows; ++r)
    for (const Part& part : parts[static_cast<size_t>(r)])
      errors[static_cast<size_t>(grid.group_of(r * n + part.first))] += part.error;
  return errors;
}

}  // namespace

Tensor rounded_to(const FrozenGrid& grid, const Tensor& weight, int threads) {
  Tensor result = weight;
  float* values = result.mutable_data<float>();
  constexpr int64_t piece = 4096;
  kernels::for_each_piece((weight.numel() + piece - 1) / piece, threads, [&](int64_t at) {
    const int64_t end = std::min(weight.numel(), (at + 1) * piece);
    for (int64_t i = at * piece; i < end; ++i)
      values[i] = static_cast<float>(grid.round(i, static_cast<double>(values[i])));
  });
  return result;
}

Tensor clipped_source(const WeightProblem& problem) {
  const NumberType* type = problem.quantizer.type ? &*problem.quantizer.type : nullptr;
  const bool fixed_grid = problem.quantizer.elementwise || (type && type->as<Fixed>());
  if (fixed_grid || problem.clips.empty()) return problem.weight;
  const FrozenGrid whole(problem.quantizer, problem.weight);
  const auto groups = static_cast<size_t>(whole.groups());
  std::vector<GroupRange> ranges(groups);
  for (int64_t i = 0; i < problem.weight.numel(); ++i) {
    GroupRange& range = ranges[static_cast<size_t>(whole.group_of(i))];
    range.low = std::min(range.low, problem.weight.data<float>()[i]);
    range.high = std::max(range.high, problem.weight.data<float>()[i]);
  }
  std::vector<double> best(groups, 1.0), least(groups, INFINITY);
  for (const double share : problem.clips) {
    const FrozenGrid grid(problem.quantizer, drawn_in(problem.weight, whole, ranges,
                                                      std::vector<double>(groups, share)));
    const std::vector<double> errors =
        group_errors(problem, whole, rounded_to(grid, problem.weight, problem.threads));
    for (size_t g = 0; g < groups; ++g)
      if (errors[g] < least[g]) least[g] = errors[g], best[g] = share;
  }
  return drawn_in(problem.weight, whole, ranges, best);
}

Field clips_field(const char* name, const char* help, Value otherwise) {
  return list_field(name, help, std::move(otherwise))
      .checked([](const Value& value) -> std::optional<std::string> {
        for (const Value& share : value.as_list())
          if (!share.is_number() || !(share.as_double() > 0) || share.as_double() > 1)
            return "expected numbers above 0 and up to 1";
        return {};
      });
}

std::vector<double> clips_of(const Value& shares) {
  std::vector<double> clips = given_numbers(shares);
  // What is no better than the whole range is not taken.
  if (!clips.empty() && std::find(clips.begin(), clips.end(), 1.0) == clips.end())
    clips.insert(clips.begin(), 1.0);
  return clips.size() > 1 ? clips : std::vector<double>();
}

}  // namespace mase
