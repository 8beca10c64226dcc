// SPDX-License-Identifier: Apache-2.0
#include "mase/io/networks/tensor_summary.h"

#include <cmath>
#include <limits>

namespace mase {
namespace {

// Calls visit(double) for every element, with the choice of dtype outside the loop.
template <class Visit>
void each(const Tensor& tensor, Visit visit) {
  const auto typed = [&](auto zero) {
    for (const auto value : tensor.values<decltype(zero)>()) visit(static_cast<double>(value));
  };
  switch (tensor.dtype()) {
    case DType::f64:
      return typed(double{});
    case DType::f32:
      return typed(float{});
    case DType::i64:
      return typed(int64_t{});
    case DType::i32:
      return typed(int32_t{});
    case DType::u8:
      return typed(uint8_t{});
    default:
      for (int64_t i = 0; i < tensor.numel(); ++i) visit(tensor.item(i));
  }
}

}  // namespace

TensorSummary summarize(const Tensor& tensor) {
  TensorSummary summary;
  summary.count = tensor.numel();
  summary.minimum = std::numeric_limits<double>::infinity();
  summary.maximum = -summary.minimum;
  double sum = 0;
  each(tensor, [&](double value) {
    if (!std::isfinite(value)) {
      ++summary.not_finite;
      return;
    }
    summary.zeros += value == 0;
    summary.minimum = value < summary.minimum ? value : summary.minimum;
    summary.maximum = value > summary.maximum ? value : summary.maximum;
    sum += value;
  });
  const auto finite = static_cast<double>(summary.count - summary.not_finite);
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  if (finite == 0) summary.minimum = summary.maximum = nothing;
  summary.mean = finite > 0 ? sum / finite : nothing;
  double squares = 0;
  each(tensor, [&](double value) {
    if (std::isfinite(value)) squares += (value - summary.mean) * (value - summary.mean);
  });
  summary.deviation = finite > 1 ? std::sqrt(squares / (finite - 1)) : nothing;
  return summary;
}

}  // namespace mase
