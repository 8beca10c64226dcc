// SPDX-License-Identifier: Apache-2.0
// Of predicted numbers, what was predicted beside what is true, for drawing: evenly spaced rows of
// the split, and the first outputs where there are many.
#include <algorithm>

#include "mase/train/metric.h"

namespace mase::predictions_metric {
namespace {

constexpr int64_t most_rows = 300, most_outputs = 4;

Value compute(const MetricInput& input) {
  const int64_t rows = std::min(input.rows, most_rows);
  List outputs;
  for (int64_t o = 0; o < std::min(input.outputs, most_outputs); ++o) {
    List truth, predicted;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = rows < 2 ? 0 : i * (input.rows - 1) / (rows - 1);
      truth.push_back(double{input.targets[row * input.outputs + o]});
      predicted.push_back(double{input.logits[row * input.outputs + o]});
    }
    outputs.push_back(Dict{{"true", std::move(truth)}, {"predicted", std::move(predicted)}});
  }
  return Dict{{"rows", rows}, {"outputs", std::move(outputs)}};
}

const Register<MetricRecord> registered{{.name = "predictions",
                                         .summary = "what was predicted beside what is true, of "
                                                    "some rows",
                                         .for_classes = false,
                                         .for_numbers = true,
                                         .compute = compute}};

}  // namespace
}  // namespace mase::predictions_metric
