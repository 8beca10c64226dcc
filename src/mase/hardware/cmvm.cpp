// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/cmvm.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "mase/hardware/cmvm_sharing.h"
#include "mase/hardware/linear_form.h"

namespace mase {

int chain_bits(const IntegerRange& a, int shift_a, const IntegerRange& b, int shift_b,
               bool subtract, const IntegerRange& result) {
  if (!subtract) {
    if (!a.is_signed() && a.width() + shift_a <= shift_b) return 0;
    if (!b.is_signed() && b.width() + shift_b <= shift_a) return 0;
  }
  return std::max(0, result.width() - (subtract ? shift_b : std::max(shift_a, shift_b)));
}

double chain_delay(int bits) { return bits == 0 ? 0 : 1.6 + bits / 12.0; }

namespace {

// One way to search: what is tried first, and how much is left to chance.
struct Attempt {
  double term_weight;
  double noise;
  bool other_digits;
};

Attempt attempt_of(int index) {
  static constexpr double weights[] = {3, 0, 8, 1.5};
  if (index < 4) return {weights[index], 0, false};
  return {weights[index % 4], 0.05 * (1 + index % 5), index % 2 == 1};
}

// Restarts by the work of one: small products get many. An effort step doubles them.
int attempts(const std::vector<CmvmColumn>& columns, int effort) {
  double work = 0;
  for (const CmvmColumn& column : columns)
    work += static_cast<double>(column.size()) * static_cast<double>(column.size());
  const double budget = 1.6e6 * std::ldexp(1.0, effort - 1);
  const double most = 64 * std::ldexp(1.0, std::max(0, effort - 1));
  return effort == 0 ? 1 : static_cast<int>(std::clamp(budget / std::max(work, 1.0), 1.0, most));
}

std::vector<CmvmColumn> columns_of(const CmvmProblem& problem, size_t outputs, Random* random) {
  std::vector<CmvmColumn> columns(outputs);
  for (size_t o = 0; o < outputs; ++o)
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      const CmvmColumn digits = signed_digits(problem.weights[i][o], static_cast<int>(i), random);
      columns[o].insert(columns[o].end(), digits.begin(), digits.end());
    }
  return columns;
}

}  // namespace

AdderGraph solve_cmvm(const CmvmProblem& problem, const CmvmOptions& options) {
  const size_t outputs = problem.weights.empty() ? 0 : problem.weights[0].size();
  const std::vector<CmvmColumn> canonical = columns_of(problem, outputs, nullptr);
  const int tries = attempts(canonical, options.effort);
  std::optional<AdderGraph> best;
  for (int index = 0; index < tries; ++index) {
    const Attempt attempt = attempt_of(index);
    Random random(options.seed, "cmvm", static_cast<uint64_t>(index));
    CmvmSharing sharing(problem);
    const CmvmColumn results =
        sharing.add_up(attempt.other_digits ? columns_of(problem, outputs, &random) : canonical,
                       {.noise = attempt.noise,
                        .term_weight = attempt.term_weight,
                        .delay_weight = options.delay_weight},
                       random);
    AdderGraph graph = sharing.finish(results);
    const auto worth = [&](const AdderGraph& g) {
      return static_cast<double>(g.bits) * (1 + options.delay_weight * g.arrival / 100);
    };
    if (!best || worth(graph) < worth(*best)) best = std::move(graph);
  }
  return std::move(*best);
}

std::string check_cmvm(const CmvmProblem& problem, const AdderGraph& graph) {
  const size_t inputs = problem.inputs.size();
  const size_t outputs = problem.weights.empty() ? 0 : problem.weights[0].size();
  std::vector<std::vector<int64_t>> forms;
  for (size_t i = 0; i < inputs; ++i) {
    forms.emplace_back(inputs, 0);
    forms.back()[i] = 1;
  }
  for (size_t k = 0; k < graph.adders.size(); ++k) {
    const AdderGraph::Adder& adder = graph.adders[k];
    std::vector<int64_t> form(inputs);
    IntegerRange range;
    for (size_t i = 0; i < inputs; ++i) {
      const int64_t a = forms[static_cast<size_t>(adder.a)][i] * (int64_t{1} << adder.shift_a);
      const int64_t b = forms[static_cast<size_t>(adder.b)][i] * (int64_t{1} << adder.shift_b);
      form[i] = adder.subtract ? a - b : a + b;
      const IntegerRange& in = problem.inputs[i];
      range.low += form[i] * (form[i] > 0 ? in.low : in.high);
      range.high += form[i] * (form[i] > 0 ? in.high : in.low);
    }
    if (range != adder.range)
      return fmt::format("adder {} has the interval [{}, {}], not [{}, {}]", k, range.low,
                         range.high, adder.range.low, adder.range.high);
    forms.push_back(std::move(form));
  }
  if (graph.outputs.size() != outputs) return "the number of outputs differs";
  for (size_t o = 0; o < outputs; ++o) {
    const AdderGraph::Output& output = graph.outputs[o];
    for (size_t i = 0; i < inputs; ++i) {
      int64_t factor = 0;
      if (output.node >= 0)
        factor = forms[static_cast<size_t>(output.node)][i] * (int64_t{1} << output.shift) *
                 (output.negative ? -1 : 1);
      if (factor != problem.weights[i][o])
        return fmt::format("output {} has {} times input {}, not {}", o, factor, i,
                           problem.weights[i][o]);
    }
  }
  return "";
}

CmvmProblem cmvm_from_text(const std::string& text, const std::string& place) {
  std::vector<int64_t> numbers;
  for (const std::string& line : split(text, '\n'))
    for (const std::string& word : split(line, ' ')) {
      if (strip(word).empty()) continue;
      const std::optional<int64_t> number = parse_integer(strip(word));
      if (!number || *number > 1 << 24 || *number < -(1 << 24))
        throw Error(place, fmt::format("'{}' is not a whole number of 24 bits", printable(word)));
      numbers.push_back(*number);
    }
  if (numbers.size() < 2 || numbers[0] < 1 || numbers[1] < 1 || numbers[0] > 1 << 16 ||
      numbers[1] > 1 << 16)
    throw Error(place, "the numbers of inputs and outputs are missing");
  const size_t inputs = static_cast<size_t>(numbers[0]), outputs = static_cast<size_t>(numbers[1]);
  if (numbers.size() != 2 + 2 * inputs + inputs * outputs)
    throw Error(place, fmt::format("{} numbers, not {}", numbers.size(),
                                   2 + 2 * inputs + inputs * outputs));
  CmvmProblem problem;
  for (size_t i = 0; i < inputs; ++i) {
    problem.inputs.push_back({numbers[2 + 2 * i], numbers[3 + 2 * i]});
    if (problem.inputs.back().low > problem.inputs.back().high)
      throw Error(place, fmt::format("input {} has an empty interval", i));
  }
  for (size_t i = 0; i < inputs; ++i) {
    const auto row = numbers.begin() + static_cast<std::ptrdiff_t>(2 + 2 * inputs + i * outputs);
    problem.weights.emplace_back(row, row + static_cast<std::ptrdiff_t>(outputs));
  }
  return problem;
}

}  // namespace mase
