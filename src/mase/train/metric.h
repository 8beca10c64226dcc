// SPDX-License-Identifier: Apache-2.0
// Figures of merit over a whole split, from logits and labels. A metric is one file in metrics/
// that registers one record; test, the run record and the pages take what the registry holds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/tensor.h"
#include "mase/base/value.h"

namespace mase {

struct MetricInput {
  const float* logits = nullptr;  // row-major [rows][outputs]
  const int32_t* labels = nullptr;
  int64_t rows = 0, outputs = 0;
  double loss = 0;  // mean over the rows, from the engine
};

struct MetricRecord {
  static constexpr const char* kind = "metric";
  std::string name;  // the key in the evaluation record
  std::vector<std::string> aliases = {};
  std::string summary;
  std::function<Value(const MetricInput& input)> compute;
};

Value compute_metric(const std::string& name, const MetricInput& input);

// The index of the largest of `count` values, the first of equals.
int64_t arg_max(const float* values, int64_t count);

// Receiver operating characteristic of one score against the rest: points at every distinct score,
// thinned to at most `points`, and the exact area (ties count half).
struct RocCurve {
  double auc = 0;  // not a number if one side is empty
  std::vector<double> fpr, tpr;
};
RocCurve roc_curve(const std::vector<float>& scores, const std::vector<bool>& positive,
                   size_t points = 200);

}  // namespace mase
