// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/optimize/cmvm_decomposition.h"

#include <climits>

#include "mase/formats/few_digits.h"

namespace mase {
namespace {

constexpr double most_work = 4e7;  // weights compared

struct Distance {
  int64_t digits = LLONG_MAX;
  bool negative = false;  // the column is a difference less the other one
};

// Of a column from another one.
Distance distance(const CmvmProblem& problem, size_t column, size_t other) {
  int64_t minus = 0, plus = 0;
  for (const std::vector<int64_t>& row : problem.weights) {
    minus += signed_digit_count(row[column] - row[other]);
    plus += signed_digit_count(row[column] + row[other]);
  }
  return plus < minus ? Distance{plus, true} : Distance{minus, false};
}

}  // namespace

std::optional<CmvmDecomposition> decompose(const CmvmProblem& problem, int depth) {
  const size_t inputs = problem.inputs.size();
  const size_t outputs = problem.weights.empty() ? 0 : problem.weights[0].size();
  if (static_cast<double>(outputs) * static_cast<double>(outputs * inputs) > most_work) return {};
  struct Vertex {
    Distance nearest;
    int parent = -1;  // -1: zero
    int level = 1;
    bool in_tree = false;
  };
  std::vector<Vertex> vertices(outputs);
  for (size_t o = 0; o < outputs; ++o) {
    vertices[o].nearest.digits = 0;
    for (size_t i = 0; i < inputs; ++i)
      vertices[o].nearest.digits += signed_digit_count(problem.weights[i][o]);
  }
  CmvmDecomposition result;
  result.columns.resize(outputs);
  bool joined = false;
  for (size_t count = 0; count < outputs; ++count) {
    size_t next = outputs;
    for (size_t o = 0; o < outputs; ++o)
      if (!vertices[o].in_tree &&
          (next == outputs || vertices[o].nearest.digits < vertices[next].nearest.digits))
        next = o;
    Vertex& vertex = vertices[next];
    vertex.in_tree = true;
    result.digits += vertex.nearest.digits + (vertex.parent >= 0);
    std::vector<int64_t> edge(inputs);
    for (size_t i = 0; i < inputs; ++i) {
      edge[i] = problem.weights[i][next];
      if (vertex.parent >= 0)
        edge[i] += (vertex.nearest.negative ? 1 : -1) *
                   problem.weights[i][static_cast<size_t>(vertex.parent)];
    }
    auto& parts = result.columns[next];
    if (vertex.parent >= 0) {
      joined = true;
      for (CmvmDecomposition::Part part : result.columns[static_cast<size_t>(vertex.parent)]) {
        part.negative = part.negative != vertex.nearest.negative;
        parts.push_back(part);
      }
    }
    if (vertex.nearest.digits > 0) {
      parts.push_back({static_cast<int>(result.edges.size()), false});
      result.edges.push_back(std::move(edge));
    }
    if (vertex.level >= depth) continue;
    for (size_t o = 0; o < outputs; ++o) {
      if (vertices[o].in_tree) continue;
      // One more addition joins the difference to the column it starts from.
      Distance other = distance(problem, o, next);
      if (other.digits + 1 >= vertices[o].nearest.digits + (vertices[o].parent >= 0)) continue;
      vertices[o].nearest = other;
      vertices[o].parent = static_cast<int>(next);
      vertices[o].level = vertex.level + 1;
    }
  }
  if (!joined) return {};
  return result;
}

}  // namespace mase
