// SPDX-License-Identifier: Apache-2.0
// How a tensor of a graph stands in an ONNX file: some of its rows, its dimensions in another
// order, or its numbers in another shape.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/base/value.h"
#include "mase/io/onnx/read/operand_format.h"

namespace mase::onnx {

struct TensorView {
  std::vector<int64_t> order = {};  // of its dimensions; empty: as they are
  Shape shape = {};                 // with the first dimension of its own; empty: its own
  int64_t first = 0, rows = -1;     // of the first dimension; -1: all

  bool operator==(const TensorView&) const = default;
};

Tensor viewed(const Tensor& tensor, const TensorView& view);
// The part of a tensor of shape `whole` that looks like this in the view; an Error if none does.
Tensor unviewed(const Tensor& seen, const TensorView& view, const Shape& whole);
// The format of a tensor, for what the view shows of it; nothing if a scale would be cut.
std::optional<OperandFormat> viewed(const OperandFormat& format, const TensorView& view);

Dict view_to_dict(const TensorView& view);
TensorView view_from_value(const Value& value);

}  // namespace mase::onnx
