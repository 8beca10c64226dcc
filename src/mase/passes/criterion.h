// SPDX-License-Identifier: Apache-2.0
// What pruning removes first. A criterion is one file in criteria/ that registers one record: it
// says how important every weight of a layer is, or removes weights itself and makes good in the
// others what that costs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/base/random.h"
#include "mase/base/registry.h"
#include "mase/passes/calibration.h"

namespace mase {

struct CriterionProblem {
  const Tensor& weight;
  Random& random;
  const ProductInputs* inputs = nullptr;  // where the criterion needs them
  const Tensor* gradient = nullptr;       // of the loss by the weight, where it needs that
  const Tensor* movement = nullptr;       // over steps of training, where it needs that
};

// A share of all, or n of m consecutive ones of a row are kept.
struct Sparsity {
  double share = 0;
  int64_t n = 0, m = 0;  // m above 0: this and no share
};

struct PrunedWeight {
  Tensor weight, mask;  // mask: 1 is kept; no weight: there was no solution
  std::string why = {};
};

struct CriterionRecord {
  static constexpr const char* kind = "criterion";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  bool needs_inputs = false, needs_gradients = false, needs_movement = false;
  bool by_rows = false;  // the share holds in every row of a layer
  // Of every value of the weight: the least go first.
  std::function<std::vector<double>(const CriterionProblem& problem)> importance = {};
  // Instead: single values of one layer by itself.
  std::function<PrunedWeight(const CriterionProblem& problem, const Sparsity& sparsity)> solve = {};
};

// Indices of those that go: round(share * n) of all with the least importance, or m - n of every m,
// ties by index; `row`: values of a row, over whose end no m runs.
std::vector<int64_t> least_important(const std::vector<double>& importance,
                                     const Sparsity& sparsity, int64_t row);

}  // namespace mase
