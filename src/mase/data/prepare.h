// SPDX-License-Identifier: Apache-2.0
// From numbers in memory to a data set: split as scikit-learn does, scaled by what the training
// rows say. Everything happens in place, so that a table is held once.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/data/dataset.h"

namespace mase {

// Feature rows and what belongs to each.
struct RawTable {
  FeatureNames feature_names;
  int64_t rows = 0;
  std::shared_ptr<std::byte> x;  // float32 [rows][features]
  std::vector<int32_t> labels;   // classification
  std::vector<float> targets;    // regression, [rows][outputs]

  int64_t features() const { return static_cast<int64_t>(feature_names.size()); }
  float* data() { return reinterpret_cast<float*>(x.get()); }
  const float* data() const { return reinterpret_cast<const float*>(x.get()); }
};

constexpr double test_share = 0.2;  // MASE's split of the jet data
constexpr uint32_t split_seed = 42;

// Splits, scales (fitting on the training rows unless options.apply is set) and fills train,
// validation, test and preprocessing of `dataset`. `place` names the data in errors. The last
// `given_test` rows are the test rows; -1: a fifth of all.
void prepare(RawTable table, const DatasetOptions& options, const std::string& place,
             Dataset& dataset, int64_t given_test = -1);

// Of each class: as scikit-learn's "balanced", rows / (classes x rows of the class).
std::vector<float> balanced_weights(std::span<const int32_t> labels, size_t classes);

// x = (raw - offset) / scale over rows in place; what is missing becomes `fill` first, if there is
// any.
void scale_rows(float* x, int64_t rows, const Preprocessing& preprocessing);

// The share in "0.1", or nothing for "train".
std::optional<double> validation_share(const std::string& text);

}  // namespace mase
