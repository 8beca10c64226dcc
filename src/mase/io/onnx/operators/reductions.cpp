// SPDX-License-Identifier: Apache-2.0
// Sums and means over dimensions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx::reduction_operators {
namespace {

// The axes, in order; all of them if none are given.
std::vector<int64_t> reduced_axes(const NodeContext& context, const Operand& x) {
  std::vector<int64_t> axes = context.axes(1).value_or(std::vector<int64_t>());
  if (axes.empty())
    for (size_t i = 0; i < x.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  for (int64_t& axis : axes) axis = context.checked_axis(axis, x.rank());
  std::sort(axes.begin(), axes.end());
  return axes;
}

Operand reduced(NodeContext& context, const char* op, const Operand& x) {
  const bool keep = context.integer("keepdims", 1) != 0;
  const bool none = context.axes(1).value_or(std::vector<int64_t>()).empty();
  if (x.rank() == 0 || (none && context.integer("noop_with_empty_axes", 0) != 0)) return x;
  const std::vector<int64_t> axes = reduced_axes(context, x);
  return context.call(op, {x}, Dict{{"dim", Value::of(axes)}, {"keepdim", keep}});
}

// log(sum(exp(x))), less the largest before and with it afterwards: exp of that alone may be too
// large for a float.
void log_sum_exp(NodeContext& context) {
  const Operand& x = context.input(0);
  const bool none = context.axes(1).value_or(std::vector<int64_t>()).empty();
  if (x.rank() == 0 || (none && context.integer("noop_with_empty_axes", 0) != 0))
    return context.result(0, x);
  const std::vector<int64_t> axes = reduced_axes(context, x);
  const Dict over{{"dim", Value::of(axes)}, {"keepdim", true}};
  Operand largest = x;
  if (x.is_constant() && element_count(x.shape) == 0) {
    largest = context.scalar(0);
  } else {
    for (const int64_t axis : axes)
      largest = context.call("max", {largest}, Dict{{"dim", axis}, {"keepdim", true}});
    const Operand endless = context.call(
        "gt", {context.call("abs", {largest}),
               context.scalar(static_cast<double>(std::numeric_limits<float>::max()))});
    largest = context.call("where", {endless, context.scalar(0), largest});
  }
  const Operand powers = context.call("exp", {context.call("sub", {x, largest})});
  Operand result =
      context.call("add", {context.call("log", {context.call("sum", {powers}, over)}), largest});
  if (context.integer("keepdims", 1) == 0) {
    Sizes shape;
    for (size_t i = 0; i < x.rank(); ++i)
      if (!std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)))
        shape.push_back(x.shape[i]);
    result = context.reshape(result, shape);
  }
  if (!result.is_constant()) result.element = x.element;
  context.result(0, result);
}

// One axis after the other: the largest of the largest.
void extreme(NodeContext& context, const char* op) {
  Operand x = context.input(0);
  const Element element = x.element;
  if (context.axes(1).value_or(std::vector<int64_t>()).empty() &&
      context.integer("noop_with_empty_axes", 0) != 0)
    return context.result(0, x);
  const bool keep = context.integer("keepdims", 1) != 0;
  std::vector<int64_t> axes = reduced_axes(context, x);
  if (x.is_constant() && is_real(element) && element_count(x.shape) == 0) {  // of nothing
    Shape shape = x.shape;
    for (const int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
    if (!keep) {
      shape.clear();
      for (size_t i = 0; i < x.rank(); ++i)
        if (!std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)))
          shape.push_back(x.shape[i]);
    }
    constexpr int64_t most = int64_t{1} << 20;
    if (element_count(shape) > most) context.fail("too many maxima of nothing");
    const float value = std::string(op) == "max" ? -INFINITY : INFINITY;
    Tensor filled(shape);
    std::fill_n(filled.mutable_data<float>(), filled.numel(), value);
    return context.result(0, context.like(x, filled));
  }
  std::reverse(axes.begin(), axes.end());
  for (const int64_t axis : axes) {
    x = context.call(op, {x}, Dict{{"dim", axis}, {"keepdim", keep}});
  }
  if (!x.is_constant()) x.element = element;
  context.result(0, x);
}

// How many elements a shape has.
void product_of_sizes(NodeContext& context) {
  const Operand& x = context.value(0);
  const std::vector<int64_t> axes = context.axes(1).value_or(std::vector<int64_t>{0});
  if (x.rank() != 1 || axes.size() > 1 ||
      (axes.empty() && context.integer("noop_with_empty_axes", 0) != 0))
    context.needs_batch("it computes with the size of the batch");
  if (!axes.empty()) context.checked_axis(axes[0], x.rank());
  Size product = 1;
  for (const Size& size : *x.sizes) product = product_of(product, size);
  const bool keep = context.integer("keepdims", 1) != 0;
  context.result(0, context.sizes_operand(keep ? Shape{1} : Shape{}, {product}, x.element));
}

// Entry after entry: products are rare outside of shapes.
void reduce_product(NodeContext& context) {
  if (context.value(0).sizes) return product_of_sizes(context);
  Operand x = context.input(0);
  const Element element = x.element;
  const bool none = context.axes(1).value_or(std::vector<int64_t>()).empty();
  if (none && context.integer("noop_with_empty_axes", 0) != 0) return context.result(0, x);
  const bool keep = context.integer("keepdims", 1) != 0;
  std::vector<int64_t> axes = reduced_axes(context, x);
  std::reverse(axes.begin(), axes.end());
  for (const int64_t axis : axes) {
    const auto at = static_cast<size_t>(axis);
    if (x.shape[at].has_batch()) context.needs_batch("it joins the entries of the batch");
    const int64_t size = x.shape[at];
    constexpr int64_t most = 256;
    if (size > most) context.fail(fmt::format("a product of {} factors", size));
    Sizes one = x.shape;
    one[at] = 1;
    Tensor ones(size == 0 ? one.numbers() : Shape{});
    if (size == 0) std::fill_n(ones.mutable_data<float>(), ones.numel(), 1.0f);
    Operand result = context.constant_operand(ones);
    for (int64_t i = 0; i < size; ++i) {
      const Operand entry =
          size == 1 ? x
                    : context.call("narrow", {x}, Dict{{"dim", axis}, {"start", i}, {"length", 1}});
      result = i == 0 ? entry : context.call("mul", {result, entry});
    }
    x = result;
    if (!keep) {
      Sizes shape = x.shape;
      shape.erase(shape.begin() + axis);
      x = context.reshape(x, shape);
    }
  }
  if (!x.is_constant()) x.element = element;
  context.result(0, x);
}

void cumulative_sum(NodeContext& context) {
  const Operand x = context.input(0);
  const std::vector<int64_t> given = context.integers(1, "the axis");
  if (given.size() != 1) context.fail("it has not one axis");
  const int64_t axis = context.checked_axis(given[0], x.rank());
  if (x.shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("it joins the entries of the batch");
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  constexpr int64_t most = int64_t{1} << 20;
  if (size > most) context.fail("too many entries are added up");
  const bool turned = context.integer("reverse", 0) != 0;
  const auto reversed = [&](const Operand& from) {
    if (!turned) return from;
    std::vector<int64_t> places;
    for (int64_t i = size; i-- > 0;) places.push_back(i);
    return context.call("index_select",
                        {from, context.constant_operand(
                                   Tensor::of<int64_t>({size}, std::span<const int64_t>(places)))},
                        Dict{{"dim", axis}});
  };
  Operand result = context.call("cumsum", {reversed(x)}, Dict{{"dim", axis}});
  if (context.integer("exclusive", 0) != 0) result = context.call("sub", {result, reversed(x)});
  result = reversed(result);
  if (!result.is_constant()) result.element = x.element;
  context.result(0, result);
}

// The place of the largest value, or of the smallest; the last of equal ones if asked for.
void place_of(NodeContext& context, bool largest) {
  Operand x = context.input(0);
  const int64_t axis = context.checked_axis(context.integer("axis", 0), x.rank());
  if (x.shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("it joins the entries of the batch");
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  const bool last = context.integer("select_last_index", 0) != 0;
  if (!largest) x = context.call("neg", {x});
  if (last) {
    constexpr int64_t most = int64_t{1} << 20;
    if (size > most) context.fail("too many entries are compared");
    std::vector<int64_t> turned;
    for (int64_t i = size; i-- > 0;) turned.push_back(i);
    x = context.call("index_select",
                     {x, context.constant_operand(
                             Tensor::of<int64_t>({size}, std::span<const int64_t>(turned)))},
                     Dict{{"dim", axis}});
  }
  Operand place = context.call(
      "argmax", {x}, Dict{{"dim", axis}, {"keepdim", context.integer("keepdims", 1) != 0}});
  if (last) place = context.call("sub", {context.whole_number(size - 1), place});
  place.element = Element::i64;
  context.result(0, place);
}

OnnxOperator reduction(const char* name, const char* before, const char* op, const char* after,
                       const char* summary) {
  return {.name = name, .summary = summary, .convert = [=](NodeContext& context) {
            Operand x = context.input(0);
            const Element element = x.element;
            if (*before) x = context.call(before, {x});
            x = reduced(context, op, x);
            if (*after) x = context.call(after, {x});
            if (!x.is_constant()) x.element = element;
            context.result(0, x);
          }};
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>(reduction("ReduceMean", "", "mean", "", "mean")),
    Register<OnnxOperator>(reduction("ReduceSum", "", "sum", "", "sum")),
    Register<OnnxOperator>(reduction("ReduceSumSquare", "square", "sum", "", "sum of squares")),
    Register<OnnxOperator>(reduction("ReduceL1", "abs", "sum", "", "sum of magnitudes")),
    Register<OnnxOperator>(reduction("ReduceL2", "square", "sum", "sqrt", "root of the squares")),
    Register<OnnxOperator>(reduction("ReduceLogSum", "", "sum", "log", "log of the sum")),
    Register<OnnxOperator>(
        {.name = "ReduceLogSumExp", .summary = "log of the sum of exp", .convert = log_sum_exp}),
    Register<OnnxOperator>({.name = "ReduceMax",
                            .summary = "max",
                            .convert = [](NodeContext& context) { extreme(context, "max"); }}),
    Register<OnnxOperator>({.name = "ReduceMin",
                            .summary = "min",
                            .convert = [](NodeContext& context) { extreme(context, "min"); }}),
    Register<OnnxOperator>(
        {.name = "ReduceProd", .summary = "mul, entry after entry", .convert = reduce_product}),
    Register<OnnxOperator>({.name = "CumSum", .summary = "cumsum", .convert = cumulative_sum}),
    Register<OnnxOperator>({.name = "ArgMax",
                            .summary = "argmax",
                            .convert = [](NodeContext& context) { place_of(context, true); }}),
    Register<OnnxOperator>({.name = "ArgMin",
                            .summary = "argmax of -x",
                            .convert = [](NodeContext& context) { place_of(context, false); }}),
};

}  // namespace
}  // namespace mase::onnx::reduction_operators
