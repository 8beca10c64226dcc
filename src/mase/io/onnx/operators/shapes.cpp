// SPDX-License-Identifier: Apache-2.0
// Operators that move elements or change their shape. Files with a fixed batch name its size in the
// shapes they reshape to: it becomes -1, so that the network takes any batch.
#include <algorithm>
#include <numeric>

#include "mase/io/onnx/operator.h"
#include "mase/io/onnx/tensor_moves.h"

namespace mase::onnx::shape_operators {
namespace {

int64_t checked_axis(const NodeContext& context, int64_t axis, size_t rank) {
  const auto limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit)
    context.fail(fmt::format("axis {} of {} dimensions", axis, rank));
  return axis < 0 ? axis + limit : axis;
}

// An attribute in old operator sets, an input in new ones; nothing if it is neither.
std::optional<std::vector<int64_t>> axes_of(const NodeContext& context, size_t index,
                                            const char* name = "axes") {
  if (context.has_attribute(name)) return context.integer_list(name);
  if (context.has(index)) return context.integers(index, name);
  return {};
}

bool has_batch(const NodeContext& context, int64_t size) {
  return size != 0 && size % context.batch() == 0;
}

Operand with_tensor(const NodeContext& context, const Operand& like, Tensor tensor) {
  Operand result = context.constant_operand(std::move(tensor));
  result.element = like.element;
  result.constant->element = like.element;
  result.source = like.source;
  return result;
}

Operand reshaped(NodeContext& context, const Operand& x, const Shape& shape) {
  if (x.is_constant()) {
    const Operand plain = context.materialized(x);
    if (element_count(shape) != plain.constant->tensor.numel())
      context.fail(
          fmt::format("shape {} cannot become {}", shape_text(x.shape), shape_text(shape)));
    return with_tensor(context, x, plain.constant->tensor.reshaped(shape));
  }
  if (shape == x.shape) return x;
  Shape open = shape;
  for (int64_t& size : open)
    if (has_batch(context, size)) size = -1;
  if (std::count(open.begin(), open.end(), -1) > 1)
    context.fail("two sizes of a reshape depend on the batch");
  Operand result = context.call("reshape", {x}, Dict{{"shape", Value::of(open)}});
  result.element = x.element;
  return result;
}

// The sizes a Reshape asks for, with 0 and -1 resolved.
Shape resolved(const NodeContext& context, const Operand& x, std::vector<int64_t> wanted) {
  const bool keeps_zero = context.integer("allowzero", 0) != 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] == 0 && !keeps_zero) {
      if (i >= x.rank()) context.fail("a size of 0 has no dimension to copy");
      wanted[i] = x.shape[i];
    }
  const int64_t count = element_count(x.shape);
  const auto try_shape = [&](Shape shape) -> std::optional<Shape> {
    const auto open = std::find(shape.begin(), shape.end(), -1);
    int64_t known = 1;
    for (const int64_t size : shape) {
      if (size < -1) return {};
      if (size != -1 && __builtin_mul_overflow(known, size, &known)) return {};
    }
    if (open != shape.end()) {
      if (std::count(shape.begin(), shape.end(), -1) > 1) return {};
      if (known == 0 || count % known != 0) return {};
      *open = count / known;
      known *= *open;
    }
    if (known != count) return {};
    return shape;
  };
  if (const auto fits = try_shape(wanted)) {
    // A size that happens to be the batch: [16, -1] of [batch, 16, 2] is no [16, batch * 2].
    const bool moved = !fits->empty() && x.rank() > 0 && x.shape[0] == context.batch() &&
                       fits->front() == context.fixed_batch() && context.fixed_batch() > 0 &&
                       std::find(wanted.begin(), wanted.end(), -1) != wanted.end();
    if (!moved) return *fits;
  }
  // The file's own batch, or a multiple of it, stands somewhere: the first place that fits.
  if (context.fixed_batch() > 0)
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] <= 0 || wanted[i] % context.fixed_batch() != 0) continue;
      Shape shape = wanted;
      shape[i] = wanted[i] / context.fixed_batch() * context.batch();
      if (const auto fits = try_shape(shape)) return *fits;
    }
  context.fail(fmt::format("shape {} cannot become {}", shape_text(x.shape), shape_text(wanted)));
}

void reshape(NodeContext& context) {
  const Operand& x = context.input(0);
  const auto wanted = axes_of(context, 1, "shape");
  if (!wanted) context.fail("no shape is given");
  context.result(0, reshaped(context, x, resolved(context, x, *wanted)));
}

void flatten(NodeContext& context) {
  const Operand& x = context.input(0);
  const int64_t given = context.integer("axis", 1);
  const int64_t axis =
      given == static_cast<int64_t>(x.rank()) ? given : checked_axis(context, given, x.rank());
  if (axis == 1 && x.rank() > 1 && !x.is_constant())
    return context.result(0, context.call("flatten", {x}, Dict{{"start_dim", 1}}));
  const Shape before(x.shape.begin(), x.shape.begin() + axis),
      after(x.shape.begin() + axis, x.shape.end());
  context.result(0, reshaped(context, x, {element_count(before), element_count(after)}));
}

void transpose(NodeContext& context) {
  const Operand& x = context.input(0);
  std::vector<int64_t> reversed(x.rank());
  for (size_t i = 0; i < x.rank(); ++i) reversed[i] = static_cast<int64_t>(x.rank() - 1 - i);
  const std::vector<int64_t> order = context.integer_list("perm", reversed);
  std::vector<int64_t> sorted = order, all(x.rank());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) context.fail("perm is no order of the dimensions");
  if (!x.is_constant())
    return context.result(
        0, order == all ? x : context.call("permute", {x}, Dict{{"dims", Value::of(order)}}));
  context.model().budget->charge(x.constant->tensor.bytes(), context.place());
  Operand result = with_tensor(context, x, transposed(x.constant->tensor, order));
  if (x.format) result.format = permuted(*x.format, order, x.rank());
  context.result(0, result);
}

void squeeze(NodeContext& context) {
  const Operand& x = context.input(0);
  const auto axes = axes_of(context, 1);
  std::vector<bool> gone(x.rank(), false);
  if (axes) {
    for (const int64_t axis : *axes)
      gone[static_cast<size_t>(checked_axis(context, axis, x.rank()))] = true;
  } else {
    for (size_t i = 0; i < x.rank(); ++i) gone[i] = x.shape[i] == 1;
  }
  Shape shape;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!gone[i])
      shape.push_back(x.shape[i]);
    else if (x.shape[i] != 1)
      context.fail(fmt::format("dimension {} of {} is not 1", i, shape_text(x.shape)));
  }
  if (x.is_constant()) return context.result(0, reshaped(context, x, shape));
  Operand result = x;
  for (size_t i = x.rank(); i-- > 0;)
    if (gone[i]) result = context.call("squeeze", {result}, Dict{{"dim", static_cast<int64_t>(i)}});
  result.element = x.element;
  context.result(0, result);
}

void unsqueeze(NodeContext& context) {
  const Operand& x = context.input(0);
  const auto axes = axes_of(context, 1);
  if (!axes) context.fail("no axes are given");
  const size_t rank = x.rank() + axes->size();
  std::vector<int64_t> added;
  for (const int64_t axis : *axes) added.push_back(checked_axis(context, axis, rank));
  std::sort(added.begin(), added.end());
  Shape shape = x.shape;
  for (const int64_t axis : added) {
    if (axis > static_cast<int64_t>(shape.size())) context.fail("an axis is listed twice");
    shape.insert(shape.begin() + axis, 1);
  }
  if (x.is_constant()) return context.result(0, reshaped(context, x, shape));
  Operand result = x;
  for (const int64_t axis : added)
    result = context.call("unsqueeze", {result}, Dict{{"dim", axis}});
  result.element = x.element;
  context.result(0, result);
}

void concat(NodeContext& context) {
  std::vector<Operand> parts;
  for (size_t i = 0; i < context.input_count(); ++i) parts.push_back(context.input(i));
  if (parts.empty()) context.fail("it joins nothing");
  const int64_t axis = checked_axis(context, context.integer("axis", 0), parts[0].rank());
  // Pieces without elements add nothing.
  std::erase_if(parts, [&](const Operand& part) {
    return parts.size() > 1 && part.is_constant() && part.constant->tensor.numel() == 0;
  });
  if (parts.size() == 1) return context.result(0, parts[0]);
  Operand result = context.call("cat", parts, Dict{{"dim", axis}});
  if (!result.is_constant()) result.element = parts[0].element;
  context.result(0, result);
}

// start, start + step, ... of a dimension.
Operand slice_of(NodeContext& context, const Operand& x, int64_t axis, int64_t start, int64_t step,
                 int64_t count) {
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  if (start == 0 && step == 1 && count == size) return x;
  if (has_batch(context, size)) context.fail("a part of the batch is taken");
  if (x.is_constant()) context.model().budget->charge(x.constant->tensor.bytes(), context.place());
  if (x.is_constant())
    return with_tensor(context, x,
                       sliced(context.materialized(x).constant->tensor, axis, start, step, count));
  if (count == 0) context.fail("nothing is taken of a dimension");
  if (step != 1) context.fail(fmt::format("every {}th element is taken", step));
  Operand result =
      context.call("narrow", {x}, Dict{{"dim", axis}, {"start", start}, {"length", count}});
  result.element = x.element;
  return result;
}

void slice(NodeContext& context) {
  Operand x = context.input(0);
  const auto starts = axes_of(context, 1, "starts"), ends = axes_of(context, 2, "ends");
  if (!starts || !ends || starts->size() != ends->size())
    context.fail("starts and ends are not given for the same dimensions");
  std::vector<int64_t> all(starts->size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int64_t> axes = axes_of(context, 3).value_or(all);
  const std::vector<int64_t> steps =
      context.has(4) ? context.integers(4, "steps") : std::vector<int64_t>(axes.size(), 1);
  if (axes.size() != starts->size() || steps.size() != axes.size())
    context.fail("starts, axes and steps differ in number");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = checked_axis(context, axes[i], x.rank());
    const int64_t size = x.shape[static_cast<size_t>(axis)], step = steps[i];
    if (step == 0) context.fail("a step of 0");
    if (has_batch(context, size) && (*starts)[i] == 0 && step == 1 && (*ends)[i] >= size) continue;
    const auto clamped = [&](int64_t at) {
      if (at < 0) at = at < -size ? -1 : at + size;
      return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
    };
    int64_t start = clamped((*starts)[i]);
    if (step > 0 && (*starts)[i] < -size) start = 0;
    int64_t end = clamped((*ends)[i]);
    if (step > 0 && (*ends)[i] < -size) end = 0;
    const int64_t span = step > 0 ? end - start : start - end;
    const int64_t stride = step > 0 ? step : (step == INT64_MIN ? INT64_MAX : -step);
    const int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
    x = slice_of(context, x, axis, start, step, count);
  }
  context.result(0, x);
}

void split(NodeContext& context) {
  const Operand& x = context.input(0);
  const int64_t axis = checked_axis(context, context.integer("axis", 0), x.rank());
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes = axes_of(context, 1, "split").value_or(std::vector<int64_t>());
  if (sizes.empty()) {
    const auto outputs = static_cast<int64_t>(context.node().outputs.size());
    const int64_t parts = context.integer("num_outputs", outputs);
    if (parts < 1 || parts > size) context.fail(fmt::format("{} parts of {}", parts, size));
    const int64_t each = (size + parts - 1) / parts;
    for (int64_t left = size; left > 0; left -= each) sizes.push_back(std::min(each, left));
  }
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > size - start)
      context.fail(fmt::format("parts of {} that are {} in all", size, shape_text(sizes)));
    context.result(i, slice_of(context, x, axis, start, 1, sizes[i]));
    start += sizes[i];
  }
}

void gather(NodeContext& context) {
  const Operand &data = context.input(0), &indices = context.input(1);
  const int64_t axis = checked_axis(context, context.integer("axis", 0), data.rank());
  const int64_t size = data.shape[static_cast<size_t>(axis)];
  if (!indices.is_constant()) {
    if (!data.is_constant() || data.rank() != 2 || axis != 0)
      context.fail("entries are taken by numbers that are computed while the network runs");
    return context.result(
        0,
        context.layer("embedding", Dict{{"num_embeddings", size}, {"embedding_dim", data.shape[1]}},
                      {{"weight", data}}, indices));
  }
  std::vector<int64_t> places = context.integers(1, "the indices");
  for (int64_t& place : places) {
    if (place < -size || place >= size)
      context.fail(fmt::format("index {} of {} entries", place, size));
    if (place < 0) place += size;
  }
  if (data.is_constant()) {
    const int64_t entry = size > 0 ? element_count(data.shape) / size : 0;
    const int64_t count = static_cast<int64_t>(places.size());
    if (entry > 0 && count > (int64_t{1} << 40) / entry) context.fail("too many entries are taken");
    context.model().budget->charge(static_cast<size_t>(entry * count) * 8, context.place());
  }
  if (data.is_constant())
    return context.result(0, with_tensor(context, data,
                                         gathered(context.materialized(data).constant->tensor, axis,
                                                  places, indices.shape)));
  // Neighbours are a slice; a single number takes its dimension away.
  if (places.empty()) context.fail("nothing is taken of a dimension");
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i] != places[i - 1] + 1 || indices.rank() != 1)
      context.fail("entries of a computed tensor are taken out of order");
  Operand result = slice_of(context, data, axis, places[0], 1, static_cast<int64_t>(places.size()));
  if (indices.rank() == 0) result = context.call("squeeze", {result}, Dict{{"dim", axis}});
  result.element = data.element;
  context.result(0, result);
}

void expand(NodeContext& context) {
  const Operand& x = context.input(0);
  const std::vector<int64_t> wanted = context.integers(1, "the shape");
  Shape shape(std::max(wanted.size(), x.rank()), 1);
  for (size_t i = 1; i <= shape.size(); ++i) {
    const int64_t own = i <= x.rank() ? x.shape[x.rank() - i] : 1;
    const int64_t other = i <= wanted.size() ? wanted[wanted.size() - i] : 1;
    int64_t& size = shape[shape.size() - i];
    size = own == 1 ? other : own;
    if (own != other && own != 1 && other != 1 &&
        !(own == context.batch() && other == context.fixed_batch()))
      context.fail(fmt::format("shape {} does not broadcast to {}", shape_text(x.shape),
                               shape_text(wanted)));
    if (size < 0) context.fail(fmt::format("a size of {}", size));
  }
  if (shape == x.shape) return context.result(0, x);
  // Only the batch is repeated: what takes the result broadcasts as well.
  Shape without_batch = shape;
  if (!shape.empty() && x.rank() == shape.size() && x.shape[0] == 1 &&
      (has_batch(context, shape[0]) || shape[0] == context.fixed_batch()))
    without_batch[0] = 1;
  if (without_batch == x.shape) return context.result(0, x);
  if (x.is_constant()) {
    constexpr int64_t most = int64_t{1} << 24;
    if (element_count(without_batch) > most)
      context.fail(
          fmt::format("a constant of shape {} would be computed", shape_text(without_batch)));
    context.model().budget->charge(static_cast<size_t>(element_count(without_batch)) * 8,
                                   context.place());
    return context.result(
        0,
        with_tensor(context, x, expanded(context.materialized(x).constant->tensor, without_batch)));
  }
  Shape ones = shape;
  for (size_t i = 0; i < ones.size(); ++i)
    if (has_batch(context, ones[i])) ones[i] = 1;
  const Operand zeros = context.constant_operand(Tensor(ones));
  Operand result = context.call("add", {x, zeros});
  result.element = x.element;
  context.result(0, result);
}

void shape(NodeContext& context) {
  const Operand& x = context.input(0);
  const auto rank = static_cast<int64_t>(x.rank());
  const auto limit = [&](const char* name, int64_t fallback) {
    const int64_t at = context.integer(name, fallback);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = limit("start", 0), end = limit("end", rank);
  Shape sizes;
  for (int64_t i = start; i < end; ++i) sizes.push_back(x.shape[static_cast<size_t>(i)]);
  context.result(0, context.constant_operand(Tensor::of<int64_t>(
                        {static_cast<int64_t>(sizes.size())}, std::span<const int64_t>(sizes))));
}

void size_of(NodeContext& context) {
  const int64_t count = element_count(context.input(0).shape);
  context.result(
      0, context.constant_operand(Tensor::of<int64_t>({}, std::span<const int64_t>(&count, 1))));
}

void same(NodeContext& context) { context.result(0, context.input(0)); }

void dropout(NodeContext& context) {
  if (context.has(2) && context.input(2).is_constant() &&
      context.input(2).constant->tensor.numel() == 1 &&
      context.input(2).constant->tensor.item() != 0)
    context.fail("the model was exported for training", "export it in evaluation mode");
  context.result(0, context.input(0));
}

void pad(NodeContext& context) {
  const Operand& x = context.input(0);
  const std::string mode = context.text("mode", "constant");
  const auto pads = axes_of(context, 1, "pads");
  if (!pads) context.fail("no pads are given");
  double value = context.number("value", 0);
  if (context.has(2) && context.constant(2, "the value").numel() == 1)
    value = context.constant(2, "the value").item();
  std::vector<int64_t> axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  if (context.has(3)) axes = context.integers(3, "axes");
  if (pads->size() != 2 * axes.size())
    context.fail(fmt::format("{} pads for {} dimensions", pads->size(), axes.size()));
  std::vector<int64_t> before(x.rank(), 0), after(x.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(checked_axis(context, axes[i], x.rank()));
    before[axis] = (*pads)[i];
    after[axis] = (*pads)[i + axes.size()];
    if (before[axis] < 0 || after[axis] < 0) context.fail("a negative padding");
    if (has_batch(context, x.shape[axis]) && before[axis] + after[axis] > 0)
      context.fail("the batch is padded");
  }
  size_t first = 0;
  while (first < x.rank() && before[first] == 0 && after[first] == 0) ++first;
  if (first == x.rank()) return context.result(0, x);
  if (mode != "constant") context.fail(fmt::format("padding of mode '{}'", mode));
  List list;
  for (size_t i = x.rank(); i-- > first;) {
    list.emplace_back(before[i]);
    list.emplace_back(after[i]);
  }
  context.result(0, context.call("pad", {x}, Dict{{"pad", list}, {"value", value}}));
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>({.name = "Reshape", .summary = "reshape", .convert = reshape}),
    Register<OnnxOperator>({.name = "Flatten", .summary = "flatten", .convert = flatten}),
    Register<OnnxOperator>({.name = "Transpose", .summary = "permute", .convert = transpose}),
    Register<OnnxOperator>({.name = "Squeeze", .summary = "squeeze", .convert = squeeze}),
    Register<OnnxOperator>({.name = "Unsqueeze", .summary = "unsqueeze", .convert = unsqueeze}),
    Register<OnnxOperator>({.name = "Concat", .summary = "cat", .convert = concat}),
    Register<OnnxOperator>({.name = "Slice", .summary = "narrow", .convert = slice}),
    Register<OnnxOperator>(
        {.name = "Split", .summary = "narrow, once for each part", .convert = split}),
    Register<OnnxOperator>(
        {.name = "Gather", .summary = "Embedding, or narrow", .convert = gather}),
    Register<OnnxOperator>(
        {.name = "Expand", .summary = "nothing, where what follows broadcasts", .convert = expand}),
    Register<OnnxOperator>({.name = "Shape", .summary = "a constant", .convert = shape}),
    Register<OnnxOperator>({.name = "Size", .summary = "a constant", .convert = size_of}),
    Register<OnnxOperator>({.name = "Identity", .summary = "nothing", .convert = same}),
    Register<OnnxOperator>(
        {.name = "Dropout", .summary = "nothing: the network is not training", .convert = dropout}),
    Register<OnnxOperator>({.name = "Pad", .summary = "pad", .convert = pad}),
};

}  // namespace
}  // namespace mase::onnx::shape_operators
