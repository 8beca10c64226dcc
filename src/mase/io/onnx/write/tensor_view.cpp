// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/write/tensor_view.h"

#include "mase/io/onnx/read/tensor_moves.h"

namespace mase::onnx {
namespace {

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> back(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= static_cast<int64_t>(order.size()) ||
        back[static_cast<size_t>(order[i])] >= 0)
      throw Error("", "no order of dimensions");
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return back;
}

}  // namespace

Tensor viewed(const Tensor& tensor, const TensorView& view) {
  Tensor seen = view.rows < 0 ? tensor : sliced(tensor, 0, view.first, 1, view.rows);
  if (!view.order.empty()) seen = transposed(seen, view.order);
  return view.shape.empty() ? seen : seen.reshaped(view.shape);
}

Tensor unviewed(const Tensor& seen, const TensorView& view, const Shape& whole) {
  Shape part = whole;
  if (view.rows >= 0) {
    if (whole.empty() || view.first < 0 || view.first > whole.front() ||
        view.rows > whole.front() - view.first)
      throw Error("", "no such rows");
    part.front() = view.rows;
  }
  if (!view.shape.empty()) {
    if (!view.order.empty() || seen.shape() != view.shape || seen.numel() != element_count(part))
      throw Error("", "its shape differs");
    return seen.reshaped(part);
  }
  const Tensor found = [&] {
    if (view.order.empty()) return seen;
    const std::vector<int64_t> back = inverse(view.order);
    if (back.size() != seen.shape().size()) throw Error("", "its rank differs");
    return transposed(seen, back);
  }();
  if (found.shape() != part) throw Error("", "its shape differs");
  return found;
}

std::optional<OperandFormat> viewed(const OperandFormat& format, const TensorView& view) {
  if (!format.axis) return format;
  if (view.rows >= 0) return {};
  if (!view.shape.empty()) return *format.axis == 0 ? std::optional(format) : std::nullopt;
  return view.order.empty() ? format : permuted(format, view.order, view.order.size());
}

Dict view_to_dict(const TensorView& view) {
  Dict dict;
  if (!view.order.empty()) dict.set("order", Value::of(view.order));
  if (!view.shape.empty()) dict.set("shape", Value::of(view.shape));
  if (view.rows >= 0) {
    dict.set("first", view.first);
    dict.set("rows", view.rows);
  }
  return dict;
}

TensorView view_from_value(const Value& value) {
  TensorView view;
  if (!value["order"].is_null()) view.order = value["order"].as_int_list("order");
  if (!value["shape"].is_null()) view.shape = value["shape"].as_int_list("shape");
  if (!value["rows"].is_null()) {
    view.first = value["first"].as_int("first");
    view.rows = value["rows"].as_int("rows");
    if (view.rows < 0) throw Error("", "no such rows");
  }
  return view;
}

}  // namespace mase::onnx
