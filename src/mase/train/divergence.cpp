// SPDX-License-Identifier: Apache-2.0
#include "mase/train/divergence.h"

#include <cmath>

#include "mase/base/text.h"

namespace mase {

void explain_divergence(TrainOutcome& outcome, const Dataset& data, std::string message) {
  outcome.message = std::move(message);
  outcome.remedy = "Try a lower --learning-rate or --gradient-clip-val.";
  if (data.train.bytes) return;  // no byte is so large
  const Tensor& x = data.train.x;
  const float* values = x.data<float>();
  int64_t largest = 0;
  for (int64_t i = 1; i < x.numel(); ++i)
    if (std::abs(values[i]) > std::abs(values[largest])) largest = i;
  if (x.numel() == 0 || std::abs(values[largest]) < 1e12f) return;
  const int64_t width = x.numel() / data.train.rows();
  const auto feature = static_cast<size_t>(largest % width);
  const auto& names = data.preprocessing.feature_names;
  outcome.message += fmt::format(
      "; feature {} of {} is {:g} in training row {}",
      feature < names.size() ? "'" + printable(names[feature]) + "'" : std::to_string(feature),
      data.name, values[largest], largest / width);
  outcome.remedy = "Numbers of that size overflow: scale the feature, or leave the column out.";
}

}  // namespace mase
