// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/optimize/small_sums.h"

#include <algorithm>
#include <bit>
#include <map>

#include "mase/hardware/optimize/neuron_tables.h"

namespace mase {
namespace {

constexpr size_t most_compared = 160;  // inputs whose groups are searched for, not taken in order

struct Group {
  std::vector<size_t> inputs;
  int bits = 0;
  std::vector<char> outputs;  // those that have an input of it
};

int bits_of(const IntegerRange& range) { return std::max(1, range.width()); }

size_t together(const Group& a, const Group& b) {
  size_t count = 0;
  for (size_t o = 0; o < a.outputs.size(); ++o) count += a.outputs[o] && b.outputs[o];
  return count;
}

void join_groups(Group& a, const Group& b) {
  a.inputs.insert(a.inputs.end(), b.inputs.begin(), b.inputs.end());
  a.bits += b.bits;
  for (size_t o = 0; o < a.outputs.size(); ++o) a.outputs[o] = a.outputs[o] || b.outputs[o];
}

// Groups of inputs that most outputs have together, greedily.
std::vector<Group> grouped(std::vector<Group> groups) {
  if (groups.size() > most_compared) {
    std::vector<Group> result;
    for (Group& group : groups)
      if (!result.empty() && result.back().bits + group.bits <= small_sum_bits)
        join_groups(result.back(), group);
      else
        result.push_back(std::move(group));
    return result;
  }
  while (true) {
    size_t best = 0, first = 0, second = 0;
    for (size_t a = 0; a < groups.size(); ++a)
      for (size_t b = a + 1; b < groups.size(); ++b) {
        if (groups[a].bits + groups[b].bits > small_sum_bits) continue;
        if (const size_t count = together(groups[a], groups[b]); count > best) {
          best = count;
          first = a;
          second = b;
        }
      }
    if (best == 0) return groups;
    join_groups(groups[first], groups[second]);
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(second));
  }
}

}  // namespace

std::vector<int64_t> small_sum_entries(const std::vector<IntegerRange>& operands,
                                       const std::vector<int64_t>& factors) {
  int bits = 0;
  for (const IntegerRange& range : operands) bits += bits_of(range);
  std::vector<int64_t> entries(size_t{1} << bits);
  for (size_t index = 0; index < entries.size(); ++index) {
    int at = 0;
    for (size_t k = 0; k < operands.size(); ++k) {
      const int width = bits_of(operands[k]);
      int64_t code = static_cast<int64_t>(index >> at & ((size_t{1} << width) - 1));
      if (operands[k].is_signed() && code >= int64_t{1} << (width - 1)) code -= int64_t{1} << width;
      entries[index] += factors[k] * std::clamp(code, operands[k].low, operands[k].high);
      at += width;
    }
  }
  return entries;
}

std::optional<GroupedProduct> group_narrow_inputs(const CmvmProblem& problem, int most_bits) {
  const size_t inputs = problem.inputs.size();
  const size_t outputs = problem.weights.empty() ? 0 : problem.weights[0].size();
  std::vector<Group> narrow;
  for (size_t i = 0; i < inputs; ++i) {
    if (bits_of(problem.inputs[i]) > most_bits) continue;
    Group group{{i}, bits_of(problem.inputs[i]), std::vector<char>(outputs, 0)};
    for (size_t o = 0; o < outputs; ++o) group.outputs[o] = problem.weights[i][o] != 0;
    narrow.push_back(std::move(group));
  }
  if (narrow.size() < 2) return {};
  GroupedProduct result;
  // Sums that differ by a sign and a power of two are one part.
  std::map<std::pair<std::vector<size_t>, std::vector<int64_t>>, size_t> known;
  std::vector<std::vector<int64_t>> part_weights;
  std::vector<std::vector<int64_t>> weights = problem.weights;
  for (const Group& group : grouped(std::move(narrow)))
    for (size_t o = 0; o < outputs; ++o) {
      GroupedProduct::Part part;
      uint64_t all = 0;
      for (const size_t i : group.inputs)
        if (weights[i][o] != 0) {
          part.inputs.push_back(i);
          part.factors.push_back(weights[i][o]);
          all |= static_cast<uint64_t>(weights[i][o]);
        }
      if (part.inputs.size() < 2) continue;
      const int64_t unit = (part.factors[0] < 0 ? -1 : 1) * (int64_t{1} << std::countr_zero(all));
      for (int64_t& factor : part.factors) factor /= unit;
      for (const size_t i : part.inputs) weights[i][o] = 0;
      const auto [entry, fresh] =
          known.try_emplace({part.inputs, part.factors}, result.parts.size());
      if (fresh) {
        part_weights.emplace_back(outputs, 0);
        result.parts.push_back(std::move(part));
      }
      part_weights[entry->second][o] = unit;
    }
  if (result.parts.empty()) return {};
  const auto arrival = [&](size_t i) { return problem.arrival.empty() ? 0 : problem.arrival[i]; };
  for (size_t i = 0; i < inputs; ++i) {
    if (std::all_of(weights[i].begin(), weights[i].end(), [](int64_t w) { return w == 0; }))
      continue;
    result.kept.push_back(i);
    result.problem.inputs.push_back(problem.inputs[i]);
    result.problem.arrival.push_back(arrival(i));
    result.problem.weights.push_back(std::move(weights[i]));
  }
  for (size_t p = 0; p < result.parts.size(); ++p) {
    const GroupedProduct::Part& part = result.parts[p];
    IntegerRange range;
    double latest = 0;
    std::vector<IntegerRange> operands;
    for (size_t k = 0; k < part.inputs.size(); ++k) {
      const IntegerRange& own = problem.inputs[part.inputs[k]];
      const int64_t factor = part.factors[k];
      range.low += factor * (factor > 0 ? own.low : own.high);
      range.high += factor * (factor > 0 ? own.high : own.low);
      latest = std::max(latest, arrival(part.inputs[k]));
      operands.push_back(own);
    }
    result.luts +=
        table_luts(small_sum_entries(operands, part.factors), std::max(1, range.width()));
    result.problem.inputs.push_back(range);
    result.problem.arrival.push_back(latest + 1);
    result.problem.weights.push_back(std::move(part_weights[p]));
  }
  return result;
}

}  // namespace mase
