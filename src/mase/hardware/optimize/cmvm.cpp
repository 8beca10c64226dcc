// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/optimize/cmvm.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <map>
#include <optional>

#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/cmvm_decomposition.h"
#include "mase/hardware/optimize/cmvm_sharing.h"

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
  static constexpr double weights[] = {6, 3, 0, 8};
  if (index < 4) return {weights[index], 0, false};
  return {weights[index % 4], 0.05 * (1 + index % 5), index % 2 == 1};
}

// Restarts by the work of one: small products get many. An effort step doubles them.
int attempts(const std::vector<CmvmColumn>& columns, const CmvmOptions& options) {
  if (options.effort == 0) return 1;
  double work = 1;
  for (const CmvmColumn& column : columns)
    work += static_cast<double>(column.size()) * static_cast<double>(column.size());
  const double steps = std::ldexp(1.0, options.effort - 1);
  return static_cast<int>(std::clamp(options.budget * steps / work, 1.0, 64 * steps));
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

int64_t digits_of(const std::vector<CmvmColumn>& columns) {
  int64_t digits = 0;
  for (const CmvmColumn& column : columns) digits += static_cast<int64_t>(column.size());
  return digits;
}

// The edges' sums first, then the columns as sums of those.
CmvmColumn add_up_decomposed(CmvmSharing& sharing, const CmvmDecomposition& parts,
                             const SharingOptions& options, Random& random) {
  std::vector<CmvmColumn> edges;
  for (const std::vector<int64_t>& edge : parts.edges) {
    edges.emplace_back();
    for (size_t i = 0; i < edge.size(); ++i) {
      const CmvmColumn digits = signed_digits(edge[i], static_cast<int>(i), nullptr);
      edges.back().insert(edges.back().end(), digits.begin(), digits.end());
    }
  }
  const CmvmColumn sums = sharing.add_up(std::move(edges), options, random);
  std::vector<CmvmColumn> columns;
  for (const auto& column : parts.columns) {
    // Edges that came out as one node are counted together.
    std::map<int, int64_t> factors;
    for (const CmvmDecomposition::Part& part : column) {
      const CmvmTerm& sum = sums[static_cast<size_t>(part.edge)];
      factors[sum.node] += (sum.negative != part.negative ? -1 : 1) * (int64_t{1} << sum.shift);
    }
    columns.emplace_back();
    for (const auto& [node, factor] : factors) {
      const CmvmColumn digits = signed_digits(factor, node, nullptr);
      columns.back().insert(columns.back().end(), digits.begin(), digits.end());
    }
  }
  return sharing.add_up(std::move(columns), options, random);
}

// Of the tries of a product so many more with its columns built from one another: some of a small
// one's, one of a large one's where that leaves fewer digits.
struct DecomposedTry {
  const CmvmDecomposition* parts;
  Attempt attempt;
};
std::vector<DecomposedTry> decomposed_tries(const std::vector<CmvmDecomposition>& found, int tries,
                                            int64_t digits) {
  std::vector<DecomposedTry> list;
  if (found.empty()) return list;
  const auto least = std::min_element(
      found.begin(), found.end(),
      [](const CmvmDecomposition& a, const CmvmDecomposition& b) { return a.digits < b.digits; });
  if (tries < 8) {
    if (10 * least->digits < 9 * digits) list.push_back({&*least, attempt_of(0)});
    return list;
  }
  for (int index = 0; index < tries / 4; ++index)
    list.push_back({&found[static_cast<size_t>(index) % found.size()], attempt_of(index)});
  return list;
}

}  // namespace

AdderGraph solve_cmvm(const CmvmProblem& problem, const CmvmOptions& options) {
  const size_t outputs = problem.weights.empty() ? 0 : problem.weights[0].size();
  const std::vector<CmvmColumn> canonical = columns_of(problem, outputs, nullptr);
  const int tries = attempts(canonical, options);
  std::optional<AdderGraph> best;
  const auto consider = [&](AdderGraph graph) {
    const auto worth = [&](const AdderGraph& g) {
      return static_cast<double>(g.bits) * (1 + options.delay_weight * g.arrival / 100);
    };
    if (!best || worth(graph) < worth(*best)) best = std::move(graph);
  };
  const auto sharing_options = [&](const Attempt& attempt) {
    return SharingOptions{.noise = attempt.noise,
                          .term_weight = attempt.term_weight,
                          .delay_weight = options.delay_weight};
  };
  for (int index = 0; index < tries; ++index) {
    const Attempt attempt = attempt_of(index);
    Random random(options.seed, "cmvm", static_cast<uint64_t>(index));
    CmvmSharing sharing(problem);
    const CmvmColumn results =
        sharing.add_up(attempt.other_digits ? columns_of(problem, outputs, &random) : canonical,
                       sharing_options(attempt), random);
    consider(sharing.finish(results));
  }
  if (options.effort == 0) return std::move(*best);
  std::vector<CmvmDecomposition> found;
  for (const int depth : {INT_MAX, 3, 2})
    if (std::optional<CmvmDecomposition> parts = decompose(problem, depth))
      found.push_back(std::move(*parts));
  uint64_t index = 0;
  for (const DecomposedTry& one : decomposed_tries(found, tries, digits_of(canonical))) {
    Random random(options.seed, "cmvm decomposed", index++);
    CmvmSharing sharing(problem);
    const CmvmColumn results =
        add_up_decomposed(sharing, *one.parts, sharing_options(one.attempt), random);
    consider(sharing.finish(results));
  }
  return std::move(*best);
}

std::string check_cmvm(const CmvmProblem& problem, const AdderGraph& graph) {
  const size_t inputs = problem.inputs.size();
  const size_t outputs = problem.weights.empty() ? 0 : problem.weights[0].size();
  if (graph.outputs.size() != outputs) return "the number of outputs differs";
  // A form is kept as long as an adder or an output is still to read it.
  std::vector<size_t> readers(inputs + graph.adders.size(), 0);
  for (const AdderGraph::Adder& adder : graph.adders)
    for (const int operand : {adder.a, adder.b}) ++readers[static_cast<size_t>(operand)];
  for (const AdderGraph::Output& output : graph.outputs)
    if (output.node >= 0) ++readers[static_cast<size_t>(output.node)];
  std::vector<LinearForm> forms(inputs + graph.adders.size());
  for (size_t i = 0; i < inputs; ++i) forms[i].terms = {{static_cast<IntegerId>(i), 1}};
  const auto read = [&](int node) {
    if (--readers[static_cast<size_t>(node)] == 0) forms[static_cast<size_t>(node)] = {};
  };
  for (size_t k = 0; k < graph.adders.size(); ++k) {
    const AdderGraph::Adder& adder = graph.adders[k];
    LinearForm form = combine(forms[static_cast<size_t>(adder.a)], int64_t{1} << adder.shift_a,
                              forms[static_cast<size_t>(adder.b)],
                              (adder.subtract ? -1 : 1) * (int64_t{1} << adder.shift_b));
    const IntegerRange range = range_of(form, problem.inputs);
    if (range != adder.range)
      return fmt::format("adder {} has the interval [{}, {}], not [{}, {}]", k, range.low,
                         range.high, adder.range.low, adder.range.high);
    if (readers[inputs + k] > 0) forms[inputs + k] = std::move(form);
    read(adder.a);
    read(adder.b);
  }
  std::vector<int64_t> factors(inputs);
  for (size_t o = 0; o < outputs; ++o) {
    const AdderGraph::Output& output = graph.outputs[o];
    std::fill(factors.begin(), factors.end(), 0);
    if (output.node >= 0) {
      for (const auto& [input, factor] : forms[static_cast<size_t>(output.node)].terms)
        factors[static_cast<size_t>(input)] =
            checked_multiply(factor, (output.negative ? -1 : 1) * (int64_t{1} << output.shift));
      read(output.node);
    }
    for (size_t i = 0; i < inputs; ++i)
      if (factors[i] != problem.weights[i][o])
        return fmt::format("output {} has {} times input {}, not {}", o, factors[i], i,
                           problem.weights[i][o]);
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
