// SPDX-License-Identifier: Apache-2.0
// Operators that take some entries of a dimension, or take them more than once.
#include <algorithm>
#include <numeric>

#include "mase/io/onnx/read/operator.h"
#include "mase/io/onnx/read/tensor_moves.h"

namespace mase::onnx::slice_operators {
namespace {

constexpr int64_t most_elements = int64_t{1} << 24;

constexpr int64_t most_listed = int64_t{1} << 20;  // entries that are named one by one

// start, start + step, ... of a dimension.
Operand slice_of(NodeContext& context, const Operand& x, int64_t axis, int64_t start, int64_t step,
                 int64_t count);

// Entries of a dimension by number.
Operand entries(NodeContext& context, const Operand& x, int64_t axis,
                const std::vector<int64_t>& places) {
  if (x.shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("entries of the batch are taken");
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  const auto count = static_cast<int64_t>(places.size());
  if (x.is_constant()) {
    const int64_t entry = size > 0 ? element_count(x.shape) / size : 0;
    if (entry > 0 && count > (int64_t{1} << 40) / entry) context.fail("too many entries are taken");
    context.model().budget->charge(static_cast<size_t>(entry * count) * 8, context.place());
    return context.like(
        x, gathered(context.materialized(x).constant->tensor, axis, places, Shape{count}));
  }
  const bool neighbours = std::adjacent_find(places.begin(), places.end(), [](auto a, auto b) {
                            return b != a + 1;
                          }) == places.end();
  if (neighbours) return slice_of(context, x, axis, places.empty() ? 0 : places.front(), 1, count);
  if (count > most_listed) context.fail("too many entries are taken one by one");
  const Operand index =
      context.constant_operand(Tensor::of<int64_t>({count}, std::span<const int64_t>(places)));
  Operand result = context.call("index_select", {x, index}, Dict{{"dim", axis}});
  result.element = x.element;
  return result;
}

Operand slice_of(NodeContext& context, const Operand& x, int64_t axis, int64_t start, int64_t step,
                 int64_t count) {
  if (start == 0 && step == 1 && x.shape[static_cast<size_t>(axis)] == count) return x;
  if (x.is_constant()) {
    context.model().budget->charge(x.constant->tensor.bytes(), context.place());
    const Tensor whole = context.materialized(x).constant->tensor;
    Operand part = context.like(x, sliced(whole, axis, start, step, count));
    if (axis == 0 && start == 0 && step == 1) part.table = std::make_shared<const Tensor>(whole);
    return part;
  }
  if (count == 0) {
    if (!context.whole()) context.needs_batch("nothing is taken of a dimension");
    Shape empty = x.shape;
    empty[static_cast<size_t>(axis)] = 0;
    return context.like(x, Tensor(empty));
  }
  if (step != 1) {
    if (count > most_listed) context.fail("too many entries are taken one by one");
    std::vector<int64_t> places;
    for (int64_t k = 0; k < count; ++k) places.push_back(start + k * step);
    if (count > 1) return entries(context, x, axis, places);
  }
  Operand result =
      context.call("narrow", {x}, Dict{{"dim", axis}, {"start", start}, {"length", count}});
  result.element = x.element;
  return result;
}

void slice(NodeContext& context) {
  Operand x = context.input(0);
  const auto given = [&](size_t index, const char* name) -> std::vector<Size> {
    if (!context.has_attribute(name)) {
      if (!context.has(index)) context.fail(fmt::format("no {} are given", name));
      if (is_real(context.value(index).element))
        context.fail(fmt::format("its {} are no whole numbers", name));
      if (context.value(index).rank() != 1) context.fail(fmt::format("its {} are no list", name));
      return context.sizes(index, name);
    }
    const std::vector<int64_t> listed = context.integer_list(name);
    return {listed.begin(), listed.end()};
  };
  const std::vector<Size> starts = given(1, "starts"), ends = given(2, "ends");
  if (starts.size() != ends.size())
    context.fail("starts and ends are not given for the same dimensions");
  std::vector<int64_t> all(starts.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int64_t> axes = context.axes(3).value_or(all);
  const std::vector<int64_t> steps =
      context.has(4) ? context.integers(4, "steps") : std::vector<int64_t>(axes.size(), 1);
  if (axes.size() != starts.size() || steps.size() != axes.size())
    context.fail("starts, axes and steps differ in number");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = context.checked_axis(axes[i], x.rank());
    const int64_t step = steps[i];
    if (step == 0) context.fail("a step of 0");
    if (const Size& all_of_it = x.shape[static_cast<size_t>(axis)]; all_of_it.has_batch()) {
      // All of it, as it ends at the batch or beyond any size.
      if (starts[i] == 0 && step == 1 &&
          (ends[i] == all_of_it || ends[i] == INT64_MAX || ends[i] == INT32_MAX))
        continue;
      context.needs_batch("a part of the batch is taken");
    }
    const int64_t size = x.shape[static_cast<size_t>(axis)], first = starts[i], last = ends[i];
    const auto clamped = [&](int64_t at) {
      if (at < 0) at = at < -size ? -1 : at + size;
      return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
    };
    int64_t start = clamped(first);
    if (step > 0 && first < -size) start = 0;
    int64_t end = clamped(last);
    if (step > 0 && last < -size) end = 0;
    const int64_t span = step > 0 ? end - start : start - end;
    const int64_t stride = step > 0 ? step : (step == INT64_MIN ? INT64_MAX : -step);
    const int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
    x = slice_of(context, x, axis, start, step, count);
  }
  context.result(0, x);
}

void split(NodeContext& context) {
  const Operand& x = context.input(0);
  const int64_t axis = context.checked_axis(context.integer("axis", 0), x.rank());
  if (x.shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("a part of the batch is taken");
  const int64_t size = x.shape[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes = context.axes(1, "split").value_or(std::vector<int64_t>());
  if (sizes.empty()) {
    const auto outputs = static_cast<int64_t>(context.node().outputs.size());
    const int64_t parts = context.integer("num_outputs", outputs);
    if (parts < 1 || (parts > size && size > 0))
      context.fail(fmt::format("{} parts of {}", parts, size));
    const int64_t each = (size + parts - 1) / parts;
    for (int64_t left = size; left > 0; left -= each) sizes.push_back(std::min(each, left));
    if (size == 0) sizes.assign(static_cast<size_t>(parts), 0);
  }
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > size - start)
      context.fail(fmt::format("parts of {} that are {} in all", size, shape_text(sizes)));
    context.result(i, slice_of(context, x, axis, start, 1, sizes[i]));
    start += sizes[i];
  }
}

// A table of constants read by numbers that are computed.
Operand looked_up(NodeContext& context, const Operand& data, int64_t axis, const Operand& given) {
  const int64_t size = data.shape[static_cast<size_t>(axis)];
  // The dimension in front; all others are one row.
  std::vector<int64_t> order = {axis};
  for (int64_t i = 0; i < static_cast<int64_t>(data.rank()); ++i)
    if (i != axis) order.push_back(i);
  Operand table = data;
  if (axis != 0) {
    context.model().budget->charge(data.constant->tensor.bytes(), context.place());
    table = context.like(data, transposed(context.materialized(data).constant->tensor, order));
  }
  const Shape rest(table.shape.begin() + 1, table.shape.end());
  if (size < 1 || element_count(rest) < 1) context.fail("an empty table is read");
  if (data.rank() != 2) table = context.reshape(table, {size, element_count(rest)});
  Operand rows = context.layer(
      "embedding", Dict{{"num_embeddings", size}, {"embedding_dim", table.shape[1].number()}},
      {{"weight", table}}, given);
  rows.element = data.element;
  if (data.rank() != 2) {
    Sizes shape = given.shape;
    shape.insert(shape.end(), rest.begin(), rest.end());
    rows = context.reshape(rows, shape);
  }
  if (axis == 0) return rows;
  // The dimensions of the numbers go where the dimension was.
  std::vector<int64_t> back;
  const auto count = static_cast<int64_t>(given.rank());
  for (int64_t i = 0; i < axis; ++i) back.push_back(count + i);
  for (int64_t i = 0; i < count; ++i) back.push_back(i);
  for (int64_t i = axis; i + 1 < static_cast<int64_t>(data.rank()); ++i) back.push_back(count + i);
  return context.call("permute", {rows}, Dict{{"dims", Value::of(back)}});
}

void gather(NodeContext& context) {
  const Operand &data = context.input(0), &indices = context.input(1);
  const int64_t axis = context.checked_axis(context.integer("axis", 0), data.rank());
  if (!indices.is_constant()) {
    if (!data.is_constant())
      context.fail("entries are taken by numbers that are computed while the network runs");
    return context.result(0, looked_up(context, data, axis, indices));
  }
  if (data.shape[static_cast<size_t>(axis)].has_batch())
    context.needs_batch("entries of the batch are taken");
  const int64_t size = data.shape[static_cast<size_t>(axis)];
  std::vector<int64_t> places = context.integers(1, "the indices");
  for (int64_t& place : places) {
    if (place < -size || place >= size)
      context.fail(fmt::format("index {} of {} entries", place, size));
    if (place < 0) place += size;
  }
  Operand result = entries(context, data, axis, places);
  if (indices.rank() == 1) return context.result(0, result);
  // The numbers' own shape in place of the dimension; a single number takes it away.
  Sizes shape(data.shape.begin(), data.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  if (!data.is_constant() && indices.rank() == 0)
    result = context.call("squeeze", {result}, Dict{{"dim", axis}});
  else
    result = context.reshape(result, shape);
  result.element = data.element;
  context.result(0, result);
}

void expand(NodeContext& context) {
  const Operand& x = context.input(0);
  const std::vector<Size> wanted = context.sizes(1, "the shape");
  Sizes shape(std::max(wanted.size(), x.rank()), 1);
  for (size_t i = 1; i <= shape.size(); ++i) {
    const Size own = i <= x.rank() ? x.shape[x.rank() - i] : Size(1);
    const Size other = i <= wanted.size() ? wanted[wanted.size() - i] : Size(1);
    Size& size = shape[shape.size() - i];
    size = own == 1 ? other : own;
    const bool fixed = own.is_batch() && other == context.fixed_batch();
    if (own != other && own != 1 && other != 1 && !fixed) {
      const std::string cause =
          fmt::format("shape {} does not broadcast to {}", shape_text(x.shape),
                      shape_text(Sizes(wanted.begin(), wanted.end())));
      if (own.has_batch() || other.has_batch()) context.needs_batch(cause);
      context.fail(cause);
    }
    if (!size.has_batch() && size.constant < 0)
      context.fail(fmt::format("a size of {}", size.constant));
  }
  if (shape == x.shape) return context.result(0, x);
  const auto dimension =
      std::find_if(shape.begin(), shape.end(), [](const Size& size) { return size.has_batch(); });
  if (!x.is_constant()) {
    // The batch is there, or one of our own is made.
    if (!x.shape.has_batch() && dimension != shape.end())
      context.needs_batch("a value is repeated for the batch");
    Sizes ones = shape;
    for (Size& size : ones)
      if (size.has_batch()) size = 1;
    Operand result = context.call("add", {x, context.zeros(ones)});
    result.element = x.element;
    return context.result(0, result);
  }
  // One entry for all of the batch; a fixed one in front may be it, too.
  Sizes own = shape;
  std::optional<size_t> repeated;
  if (dimension != shape.end()) {
    repeated = static_cast<size_t>(dimension - shape.begin());
    own[*repeated] = 1;
    if (own.has_batch() || !dimension->is_batch())
      context.needs_batch("a constant is made as large as several batches");
  } else if (!context.whole() && context.fixed_batch() > 1 && !shape.empty() &&
             shape[0] == context.fixed_batch() && x.rank() == shape.size() && x.shape[0] == 1) {
    repeated = 0;
    own[0] = 1;
  }
  if (element_count(own) > most_elements)
    context.fail(fmt::format("a constant of shape {} would be computed", shape_text(own)));
  context.model().budget->charge(static_cast<size_t>(element_count(own).number()) * 8,
                                 context.place());
  Operand result = context.like(x, expanded(context.materialized(x).constant->tensor, own));
  result.repeated = repeated;
  context.result(0, result);
}

void tile(NodeContext& context) {
  Operand x = context.input(0);
  const std::vector<int64_t> repeats = context.integers(1, "the repeats");
  if (repeats.size() != x.rank())
    context.fail(fmt::format("{} repeats for {} dimensions", repeats.size(), x.rank()));
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] == 1) continue;
    if (x.shape[i].has_batch()) context.needs_batch("the batch is repeated");
    const int64_t size = x.shape[i];
    if (repeats[i] < 0 || (size > 0 && repeats[i] > most_listed / size))
      context.fail(fmt::format("{} repeats", repeats[i]));
    std::vector<int64_t> places;
    for (int64_t k = 0; k < size * repeats[i]; ++k) places.push_back(k % size);
    x = entries(context, x, static_cast<int64_t>(i), places);
  }
  context.result(0, x);
}

// Entry `at` of what stands around `size` entries, by the mode; negative: none.
int64_t padded_place(const NodeContext& context, const std::string& mode, int64_t at,
                     int64_t size) {
  if (size < 1) context.fail("nothing is there to pad with");
  if (mode == "edge") return std::clamp<int64_t>(at, 0, size - 1);
  if (mode == "wrap") return ((at % size) + size) % size;
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1), place = ((at % period) + period) % period;
  return place < size ? place : period - place;
}

void pad(NodeContext& context) {
  Operand x = context.input(0);
  const std::string mode = context.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    context.fail(fmt::format("padding of mode '{}'", mode));
  const auto pads = context.axes(1, "pads");
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
    const auto axis = static_cast<size_t>(context.checked_axis(axes[i], x.rank()));
    before[axis] = (*pads)[i];
    after[axis] = (*pads)[i + axes.size()];
    if (before[axis] == 0 && after[axis] == 0) continue;
    if (x.shape[axis].has_batch()) context.needs_batch("the batch is padded");
    for (const int64_t padding : {before[axis], after[axis]})
      if (padding > most_listed || padding < -most_listed)
        context.fail(fmt::format("a padding of {}", padding));
    if (mode == "constant") continue;
    if (x.shape[axis] > most_listed) context.fail("too many entries are padded");
    std::vector<int64_t> places;
    for (int64_t k = -before[axis]; k < x.shape[axis] + after[axis]; ++k)
      places.push_back(padded_place(context, mode, k, x.shape[axis]));
    x = entries(context, x, static_cast<int64_t>(axis), places);
  }
  size_t first = 0;
  while (first < x.rank() && before[first] == 0 && after[first] == 0) ++first;
  if (first == x.rank() || mode != "constant") return context.result(0, x);
  List list;
  for (size_t i = x.rank(); i-- > first;) {
    list.emplace_back(before[i]);
    list.emplace_back(after[i]);
  }
  Operand result = context.call("pad", {x}, Dict{{"pad", list}, {"value", value}});
  if (!result.is_constant()) result.element = x.element;
  context.result(0, result);
}

// One side of a diagonal, zeros on the other.
void trilu(NodeContext& context) {
  const Operand& x = context.input(0);
  if (x.rank() < 2) context.fail("its input is no matrix");
  const int64_t shift =
      context.has(1)
          ? static_cast<int64_t>(std::clamp(context.single(1, "the diagonal"), -1e9, 1e9))
          : 0;
  const bool upper = context.integer("upper", 1) != 0;
  if (x.shape[x.rank() - 2].has_batch() || x.shape[x.rank() - 1].has_batch())
    context.needs_batch("the batch is cut");
  const int64_t rows = x.shape[x.rank() - 2], columns = x.shape[x.rank() - 1];
  if (columns > 0 && rows > most_elements / columns) context.fail("its matrix is too large");
  Tensor kept(Shape{rows, columns}, DType::boolean);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k) {
      const bool above = k - i >= shift, below = k - i <= shift;
      kept.mutable_data<bool>()[i * columns + k] = upper ? above : below;
    }
  if (kept.numel() == 0) return context.result(0, x);
  Tensor zero(Shape{}, x.is_constant() ? x.constant->tensor.dtype() : DType::f32);
  Operand zeros = context.constant_operand(is_real(x.element) ? zero : zero.to(DType::i64));
  if (x.is_constant()) zeros = context.constant_operand(zero);
  Operand result = context.call("where", {context.constant_operand(kept), x, zeros});
  result.element = x.element;
  context.result(0, result);
}

constexpr auto first = OnnxOperator::Linear::first;

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>(
        {.name = "Slice", .summary = "narrow or index_select", .linear = first, .convert = slice}),
    Register<OnnxOperator>({.name = "Split",
                            .summary = "narrow, once for each part",
                            .linear = first,
                            .convert = split}),
    Register<OnnxOperator>({.name = "Gather",
                            .summary = "Embedding, narrow or index_select",
                            .linear = first,
                            .repeated = OnnxOperator::Repeated::indices,
                            .convert = gather}),
    Register<OnnxOperator>({.name = "Expand",
                            .summary = "nothing, where what follows broadcasts",
                            .linear = first,
                            .convert = expand}),
    Register<OnnxOperator>(
        {.name = "Tile", .summary = "index_select", .linear = first, .convert = tile}),
    Register<OnnxOperator>({.name = "Pad", .summary = "pad or index_select", .convert = pad}),
    Register<OnnxOperator>({.name = "Trilu", .summary = "where, with a mask", .convert = trilu}),
};

}  // namespace
}  // namespace mase::onnx::slice_operators
