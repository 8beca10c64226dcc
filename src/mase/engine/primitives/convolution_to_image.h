// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution with respect to its image, or a transposed convolution, which is
// the same sum as an operation of its own.
#pragma once

#include <optional>

#include "mase/engine/primitives/convolution_products.h"
#include "mase/engine/primitives/depthwise.h"
#include "mase/engine/primitives/winograd.h"
#include "mase/engine/primitives/winograd_rows.h"

namespace mase::engine::convolution_primitive {

// Sums of rounded operands have to stay what they are: exact where the format says so.
bool may_be_transformed(const Plan& plan, const Primitive& p);
// Nothing if Winograd's transforms do not apply. `gradient`: of the weights.
std::optional<Winograd> winograd_of(Plan& plan, const Primitive& p, bool gradient);

struct ToImage {
  // With its working memory, which joins that of the step.
  ToImage(Plan& plan, const Primitive& p, const Geometry& g, Step& step);

  Kernel kernel(const float* w, const float* bias, const float* result, float* image,
                const Memory& memory, bool accumulate) const;

  Geometry forward;
  std::optional<Geometry> back;  // of the reversed taps, where that applies
  std::optional<Winograd> winograd;
  std::optional<RowWinograd> rows;
  std::optional<Depthwise> depthwise;
  int scratch = -1, taps = -1;
};

}  // namespace mase::engine::convolution_primitive
