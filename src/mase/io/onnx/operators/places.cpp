// SPDX-License-Identifier: Apache-2.0
// Operators that name values by their places: the largest ones, entries by number, one place of a
// list marked, values put into places of another tensor.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "mase/base/text.h"
#include "mase/io/onnx/read/operator.h"

namespace mase::onnx::place_operators {
namespace {

constexpr int64_t most_listed = int64_t{1} << 20;  // places that are named one by one

Operand numbers(const NodeContext& context, const std::vector<int64_t>& values,
                const Shape& shape) {
  return context.constant_operand(Tensor::of<int64_t>(shape, std::span<const int64_t>(values)));
}

// 0, 1, ... along one axis of so many.
Operand counted(const NodeContext& context, int64_t size, int64_t axis, size_t rank) {
  std::vector<int64_t> values(static_cast<size_t>(size));
  std::iota(values.begin(), values.end(), 0);
  Shape shape(rank, 1);
  shape[static_cast<size_t>(axis)] = size;
  return numbers(context, values, shape);
}

void top_k(NodeContext& context) {
  const Operand& x = context.input(0);
  const int64_t axis = context.checked_axis(context.integer("axis", -1), x.rank());
  if (x.shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("it compares the entries of the batch");
  const int64_t k = context.has_attribute("k")
                        ? context.integer("k", 1)
                        : static_cast<int64_t>(context.single(1, "the number of values"));
  const Dict attributes{{"k", k}, {"dim", axis}, {"largest", context.integer("largest", 1) != 0}};
  if (context.output_is_used(0)) {
    Operand values = context.call("topk", {x}, attributes, 0);
    values.element = x.element;
    context.result(0, values);
  }
  if (context.output_is_used(1)) {
    Operand places = context.call("topk", {x}, attributes, 1);
    places.element = Element::i64;
    context.result(1, places);
  }
}

// Indices from 0 up; those below 0 count from the end.
Operand from_zero(NodeContext& context, const Operand& indices, int64_t size) {
  if (indices.is_constant()) {
    Tensor own = indices.constant->tensor.to(DType::i64);
    for (int64_t i = 0; i < own.numel(); ++i) {
      int64_t& place = own.mutable_data<int64_t>()[i];
      if (place < -size || place >= size)
        context.fail(fmt::format("index {} of {} entries", place, size));
      if (place < 0) place += size;
    }
    return context.constant_operand(own);
  }
  const Operand below = context.call("lt", {indices, context.scalar(0)});
  Operand moved = context.call("add", {indices, context.whole_number(size)});
  return context.call("where", {below, moved, indices});
}

void gather_elements(NodeContext& context) {
  const Operand& x = context.input(0);
  const Operand& indices = context.input(1);
  const int64_t axis = context.checked_axis(context.integer("axis", 0), x.rank());
  if (x.shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("entries of the batch are taken");
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  Operand places = from_zero(context, indices, size), from = x;
  if (indices.rank() != x.rank())
    context.fail(fmt::format("indices {} for {}", shape_text(indices.shape), shape_text(x.shape)));
  if (x.is_constant() != places.is_constant()) {
    // The result has as many entries as the indices; those of a batch of any size have as many too.
    Operand& constant = x.is_constant() ? from : places;
    if (!context.whole() && !(constant.rank() > 0 && context.fixed_batch() > 0 &&
                              constant.shape[0] == context.fixed_batch()))
      context.needs_batch("it takes entries of a batch and of constants");
    const Element element = constant.element;
    constant = context.with_batch(constant);
    constant.element = element;
  }
  Operand result = context.call("gather", {from, places}, Dict{{"dim", axis}});
  result.element = x.element;
  context.result(0, result);
}

// 1 where a number of a new axis is the index, 0 elsewhere; or two other values.
void one_hot(NodeContext& context) {
  const Operand& indices = context.input(0);
  const double depth = context.single(1, "the depth");
  if (!(depth >= 1 && depth <= static_cast<double>(most_listed)))
    context.fail(fmt::format("a depth of {}", depth));
  const std::vector<double> values = context.numbers(2, "the two values");
  if (values.size() != 2) context.fail(fmt::format("{} values, wanted are two", values.size()));
  const auto count = static_cast<int64_t>(depth);
  const size_t rank = indices.rank() + 1;
  const int64_t axis = context.checked_axis(context.integer("axis", -1), rank);
  Sizes shape = indices.shape;
  shape.insert(shape.begin() + axis, 1);
  Operand given = context.reshape(indices, shape);
  if (given.is_constant()) {
    Tensor own = given.constant->tensor.to(DType::i64);
    for (int64_t i = 0; i < own.numel(); ++i)
      if (own.data<int64_t>()[i] < 0) own.mutable_data<int64_t>()[i] += count;
    given = context.constant_operand(own);
  } else {
    given =
        context.call("where", {context.call("lt", {given, context.scalar(0)}),
                               context.call("add", {given, context.whole_number(count)}), given});
  }
  const Operand marked = context.call("eq", {given, counted(context, count, axis, rank)});
  Operand result =
      context.call("where", {marked, context.scalar(values[1]), context.scalar(values[0])});
  if (result.is_constant())
    result = context.constant_operand(
        result.constant->tensor.to(context.input(2).constant->tensor.dtype()));
  result.element = context.input(2).element;
  context.result(0, result);
}

// 1 in the place of the largest value, the first of equal ones.
void hardmax(NodeContext& context) {
  const Operand& x = context.input(0);
  constexpr int64_t one_axis_since = 13;
  const bool flattens = context.version() < one_axis_since;
  const int64_t axis = context.checked_axis(context.integer("axis", flattens ? 1 : -1), x.rank());
  Operand line = x;
  if (flattens) {
    Sizes shape(x.shape.begin(), x.shape.begin() + axis);
    shape.push_back(element_count(Sizes(x.shape.begin() + axis, x.shape.end())));
    line = context.reshape(x, shape);
  }
  if (line.shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("it compares the entries of the batch");
  const int64_t size = line.shape[static_cast<size_t>(axis)];
  if (size > most_listed) context.fail("too many entries are compared");
  const Operand place = context.call("argmax", {line}, Dict{{"dim", axis}, {"keepdim", true}});
  const Operand marked = context.call("eq", {place, counted(context, size, axis, line.rank())});
  Operand result = context.call("where", {marked, context.scalar(1), context.scalar(0)});
  result.element = x.element;
  context.result(0, context.reshape(result, x.shape));
}

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

int64_t small_count(const NodeContext& context, const Sizes& shape) {
  if (shape.has_batch()) context.needs_batch("entries of the batch are named");
  const int64_t count = element_count(shape);
  if (count > most_listed) context.fail("too many entries are named one by one");
  return count;
}

// Of a tensor seen as a list, the entries in this order.
Operand taken(NodeContext& context, const Operand& list, const std::vector<int64_t>& places,
              const Shape& shape) {
  Operand result = context.call(
      "index_select", {list, numbers(context, places, {static_cast<int64_t>(places.size())})},
      Dict{{"dim", 0}});
  result = context.reshape(result, shape);
  result.element = list.element;
  return result;
}

// The places in a flat tensor that rows of indices name, `index` numbers each, and whatever stands
// behind them. `batch`: so many dimensions of both go together.
std::vector<int64_t> places_named(const NodeContext& context, const Shape& shape,
                                  const Tensor& indices, size_t index, size_t batch = 0) {
  const std::vector<int64_t> strides = strides_of(shape);
  const auto split = [](const Shape& sizes, size_t at) {
    return element_count(Shape(sizes.begin() + static_cast<int64_t>(at), sizes.end()));
  };
  const int64_t rows = indices.numel() / static_cast<int64_t>(index),
                behind = split(shape, batch + index), entry = split(shape, batch);
  const int64_t batches = entry > 0 ? element_count(shape) / entry : 0;
  if (batches < 1 || rows % batches != 0) context.fail("its indices have another batch");
  if (behind > 0 && rows > most_listed / behind)
    context.fail("too many entries are named one by one");
  std::vector<int64_t> places;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t start = row / (rows / batches) * entry;
    for (size_t i = 0; i < index; ++i) {
      const int64_t size = shape[batch + i];
      auto at = static_cast<int64_t>(
          indices.item(row * static_cast<int64_t>(index) + static_cast<int64_t>(i)));
      if (at < -size || at >= size) context.fail(fmt::format("index {} of {} entries", at, size));
      if (at < 0) at += size;
      start += at * strides[batch + i];
    }
    for (int64_t k = 0; k < behind; ++k) places.push_back(start + k);
  }
  return places;
}

size_t index_width(const NodeContext& context, const Operand& x, const Tensor& indices,
                   size_t batch = 0) {
  const int64_t width = indices.shape().empty() ? 0 : indices.shape().back();
  if (width < 1 || width > static_cast<int64_t>(x.rank() - std::min(x.rank(), batch)))
    context.fail(fmt::format("rows of {} indices for {}", width, shape_text(x.shape)));
  return static_cast<size_t>(width);
}

void gather_nd(NodeContext& context) {
  const Operand& x = context.input(0);
  const Tensor indices = context.constant(1, "the indices");
  const int64_t together = context.integer("batch_dims", 0);
  if (together < 0 || together >= static_cast<int64_t>(indices.shape().size()))
    context.fail(fmt::format("{} batch_dims", together));
  const auto batch = static_cast<size_t>(together);
  const size_t width = index_width(context, x, indices, batch);
  const int64_t count = small_count(context, x.shape);
  Shape shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), x.shape.begin() + static_cast<int64_t>(batch + width), x.shape.end());
  context.result(0, taken(context, context.reshape(x, {count}),
                          places_named(context, x.shape, indices, width, batch), shape));
}

// Lists one behind the other; constants among computed ones are repeated for the batch.
Operand joined(NodeContext& context, std::vector<Operand> lists) {
  if (lists[0].is_constant() != lists[1].is_constant())
    for (Operand& one : lists)
      if (one.is_constant()) one = context.with_batch(one);
  Operand list = context.call("cat", lists, Dict{{"dim", 0}});
  list.element = lists[0].element;
  return list;
}

// Values of `updates` in these places of x, one after the other: in the place of what stands there,
// or computed with it.
Operand replaced(NodeContext& context, const Operand& x, const Operand& updates,
                 const std::vector<int64_t>& places) {
  struct Reduction {
    const char *name, *op;
    float neutral;
  };
  static constexpr Reduction reductions[] = {{"none", "", 0},
                                             {"add", "add", 0},
                                             {"mul", "mul", 1},
                                             {"max", "maximum", -INFINITY},
                                             {"min", "minimum", INFINITY}};
  const std::string wanted = context.text("reduction", "none");
  const auto* reduction = std::find_if(std::begin(reductions), std::end(reductions),
                                       [&](const Reduction& one) { return wanted == one.name; });
  if (reduction == std::end(reductions))
    context.fail(fmt::format("the reduction '{}'", printable(wanted)));
  const int64_t count = small_count(context, x.shape), added = small_count(context, updates.shape);
  if (static_cast<int64_t>(places.size()) != added)
    context.fail(fmt::format("{} values for {} places", added, places.size()));
  const Operand list = context.reshape(x, {count}), values = context.reshape(updates, {added});
  if (!*reduction->op) {
    std::vector<int64_t> from(static_cast<size_t>(count));
    std::iota(from.begin(), from.end(), 0);
    for (size_t i = 0; i < places.size(); ++i)
      from[static_cast<size_t>(places[i])] = count + static_cast<int64_t>(i);
    return taken(context, joined(context, {list, values}), from, x.shape);
  }
  // Rounds in which no place comes twice; elsewhere stands a number that changes nothing.
  const Operand all = joined(
      context,
      {values, context.constant_operand(Tensor::of({1}, std::vector<float>{reduction->neutral}))});
  std::vector<bool> done(places.size(), false);
  Operand result = list;
  constexpr int most_rounds = 64;
  for (int round = 0; std::find(done.begin(), done.end(), false) != done.end(); ++round) {
    if (round == most_rounds) context.fail("one place is named too often");
    std::vector<int64_t> from(static_cast<size_t>(count), added);
    for (size_t i = 0; i < places.size(); ++i) {
      int64_t& place = from[static_cast<size_t>(places[i])];
      if (done[i] || place != added) continue;
      place = static_cast<int64_t>(i);
      done[i] = true;
    }
    result = context.call(reduction->op, {result, taken(context, all, from, {count})});
  }
  result = context.reshape(result, x.shape);
  result.element = x.element;
  return result;
}

void scatter_nd(NodeContext& context) {
  const Operand& x = context.input(0);
  const Tensor indices = context.constant(1, "the indices");
  small_count(context, x.shape);
  context.result(
      0, replaced(context, x, context.input(2),
                  places_named(context, x.shape, indices, index_width(context, x, indices))));
}

void scatter_elements(NodeContext& context) {
  const Operand& x = context.input(0);
  const Tensor indices = context.constant(1, "the indices");
  const int64_t axis = context.checked_axis(context.integer("axis", 0), x.rank());
  small_count(context, x.shape);
  bool fits = indices.shape().size() == x.rank();
  for (size_t i = 0; fits && i < x.rank(); ++i)
    fits = static_cast<int64_t>(i) == axis || indices.dim(i) <= x.shape[i];
  if (!fits)
    context.fail(
        fmt::format("indices {} for {}", shape_text(indices.shape()), shape_text(x.shape)));
  const std::vector<int64_t> strides = strides_of(x.shape), own = strides_of(indices.shape());
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  std::vector<int64_t> places;
  for (int64_t at = 0; at < indices.numel(); ++at) {
    int64_t place = 0;
    for (size_t i = 0; i < x.rank(); ++i) {
      int64_t position = at / own[i] % indices.dim(i);
      if (static_cast<int64_t>(i) == axis) {
        position = static_cast<int64_t>(indices.item(at));
        if (position < -size || position >= size)
          context.fail(fmt::format("index {} of {} entries", position, size));
        if (position < 0) position += size;
      }
      place += position * strides[i];
    }
    places.push_back(place);
  }
  context.result(0, replaced(context, x, context.input(2), places));
}

// Ones on a diagonal of a matrix as large as x.
void eye_like(NodeContext& context) {
  const Operand& x = context.input(0);
  if (x.rank() != 2) context.fail("its input is no matrix");
  const int64_t count = small_count(context, x.shape), shift = context.integer("k", 0);
  const auto to = static_cast<Element>(context.integer("dtype", static_cast<int64_t>(x.element)));
  const auto dtype = dtype_of(to);
  if (!dtype) context.fail(fmt::format("numbers of {}", element_name(to)));
  context.model().budget->charge(static_cast<size_t>(count) * sizeof(float), context.place());
  Tensor ones(x.shape);
  for (int64_t i = 0; i < x.shape[0]; ++i)
    if (i + shift >= 0 && i + shift < x.shape[1])
      ones.mutable_data<float>()[i * x.shape[1] + i + shift] = 1;
  Operand result = context.constant_operand(ones.to(*dtype));
  result.element = result.constant->element = to;
  context.result(0, result);
}

void non_zero(NodeContext& context) {
  const Tensor x = context.constant(0, "what it looks for places in");
  const std::vector<int64_t> strides = strides_of(x.shape());
  if (x.numel() > most_listed) context.fail("too many entries are looked at");
  std::vector<int64_t> places;
  for (int64_t i = 0; i < x.numel(); ++i)
    if (x.item(i) != 0) places.push_back(i);
  std::vector<int64_t> values;
  for (size_t d = 0; d < x.shape().size(); ++d)
    for (const int64_t place : places) values.push_back(place / strides[d] % x.dim(d));
  context.result(
      0, numbers(context, values,
                 {static_cast<int64_t>(x.shape().size()), static_cast<int64_t>(places.size())}));
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>({.name = "TopK", .summary = "topk", .convert = top_k}),
    Register<OnnxOperator>(
        {.name = "GatherElements", .summary = "gather", .convert = gather_elements}),
    Register<OnnxOperator>({.name = "GatherND",
                            .summary = "index_select, where the indices are constants",
                            .convert = gather_nd}),
    Register<OnnxOperator>({.name = "ScatterND",
                            .summary = "cat and index_select, where the indices are constants",
                            .convert = scatter_nd}),
    Register<OnnxOperator>({.name = "ScatterElements",
                            .aliases = {"Scatter"},
                            .summary = "cat and index_select, where the indices are constants",
                            .convert = scatter_elements}),
    Register<OnnxOperator>({.name = "OneHot", .summary = "eq and where", .convert = one_hot}),
    Register<OnnxOperator>(
        {.name = "Hardmax", .summary = "argmax, eq and where", .convert = hardmax}),
    Register<OnnxOperator>({.name = "EyeLike", .summary = "a constant", .convert = eye_like}),
    Register<OnnxOperator>(
        {.name = "NonZero", .summary = "a constant, of constants", .convert = non_zero}),
};

}  // namespace
}  // namespace mase::onnx::place_operators
