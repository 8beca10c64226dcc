// SPDX-License-Identifier: Apache-2.0
// Which primitive each case of ir/lowering.h becomes, and in which layout.
#include <algorithm>
#include <set>

#include "mase/base/broadcast.h"
#include "mase/engine/lowerer.h"
#include "mase/engine/payloads.h"

namespace mase::engine {
namespace {

Shape padded_left(const Shape& shape, size_t rank) {
  Shape result(rank - shape.size(), 1);
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

// The same axes with these row axes last, if what stands behind them now has size 1.
std::optional<Axes> ending_with(const TensorInfo& info, const std::vector<int>& wanted) {
  Axes axes;
  std::vector<int> rest;
  for (const int axis : info.axes.rows) {
    const bool last = std::find(wanted.begin(), wanted.end(), axis) != wanted.end();
    if (!last && info.shape[static_cast<size_t>(axis)] == 1)
      axes.rows.push_back(axis);
    else
      rest.push_back(axis);
  }
  for (const int axis : info.axes.lanes) {
    const bool row = std::find(wanted.begin(), wanted.end(), axis) != wanted.end();
    if (row && info.shape[static_cast<size_t>(axis)] != 1) return {};
    if (!row) axes.lanes.push_back(axis);
  }
  std::vector<int> tail;
  for (const int axis : wanted)
    if (std::find(rest.begin(), rest.end(), axis) != rest.end()) tail.push_back(axis);
  if (tail.size() > rest.size() || !std::equal(tail.rbegin(), tail.rend(), rest.rbegin()))
    return {};
  rest.resize(rest.size() - tail.size());
  axes.rows.insert(axes.rows.end(), rest.begin(), rest.end());
  axes.rows.insert(axes.rows.end(), wanted.begin(), wanted.end());
  return axes;
}

// The axes that are left when some dimensions are gone.
Axes without(const Axes& axes, const std::set<int64_t>& gone) {
  Axes result;
  const auto keep = [&](const std::vector<int>& from, std::vector<int>& to) {
    for (const int axis : from) {
      if (gone.count(axis)) continue;
      const auto before = std::distance(gone.begin(), gone.lower_bound(axis));
      to.push_back(axis - static_cast<int>(before));
    }
  };
  keep(axes.rows, result.rows);
  keep(axes.lanes, result.lanes);
  return result;
}

}  // namespace

Slot Lowerer::view(Slot x, Shape shape, Axes axes) {
  x = widened(x);
  TensorInfo info = plan_.at(x);
  info.shape = std::move(shape);
  info.axes = std::move(axes);
  info.view_of = x;
  info.before_rounding = -1;
  info.node = -1;
  if (node_) info.name = node_->name;
  return plan_.add(std::move(info));
}

Slot Lowerer::relayout(Slot x, const Axes& axes) {
  if (x < 0) return x;
  const TensorInfo& info = plan_.at(x);
  if (info.axes.rows == axes.rows && info.axes.lanes == axes.lanes) return x;
  const auto key = std::make_tuple(x, axes.rows, axes.lanes);
  if (const auto found = moved_.find(key); found != moved_.end()) return found->second;
  const Shape shape = info.shape;
  const Slot out =
      same_memory(shape, info.axes, axes)
          ? view(x, shape, axes)
          : add("relayout", {.in = {x}, .payload = RelayoutPayload{}}, shape, Layout::batch, axes);
  return moved_[key] = out;
}

Slot Lowerer::spread(Slot x, const Shape& shape, const Axes& axes) {
  Shape wanted = padded_left(plan_.at(x).shape, shape.size());
  for (const int axis : axes.lanes)
    wanted[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
  return add("relayout", {.in = {x}, .payload = RelayoutPayload{}}, wanted, Layout::batch, axes);
}

Slot Lowerer::flat(Slot x) {
  return is_batch(x) ? relayout(x, Axes::flat(plan_.at(x).shape.size())) : x;
}

Slot Lowerer::map(const Expr& expr, const std::vector<Slot>& operands) {
  Shape shape;
  bool batch = false;
  for (const Slot operand : operands) {
    if (!known(operand)) return -1;
    const auto wider = broadcast_shape(shape, this->shape(operand));
    if (!wider) return -1;
    shape = *wider;
    batch = batch || is_batch(operand);
  }
  Primitive primitive{.in = operands, .payload = MapPayload{expr}};
  if (!batch) return add("map", std::move(primitive), shape, Layout::fixed);
  std::optional<Axes> axes;
  for (const Slot operand : operands) {
    const TensorInfo& info = plan_.at(operand);
    if (info.layout == Layout::batch && info.shape.size() != shape.size()) return -1;
    if (info.layout == Layout::fixed && info.shape.size() == shape.size() && info.shape[0] != 1)
      return -1;
    if (info.layout == Layout::batch && info.shape == shape && !axes) axes = info.axes;
  }
  if (!axes) axes = Axes::flat(shape.size());
  for (Slot& operand : primitive.in) {
    const Shape own = padded_left(this->shape(operand), shape.size());
    const bool even = std::all_of(axes->lanes.begin(), axes->lanes.end(), [&](int axis) {
      const auto i = static_cast<size_t>(axis);
      return is_batch(operand) ? own[i] == shape[i] : own[i] == 1;
    });
    if (!even)
      operand = spread(operand, shape, *axes);
    else if (is_batch(operand))
      operand = relayout(operand, *axes);
  }
  return add("map", std::move(primitive), shape, Layout::batch, *axes);
}

Slot Lowerer::linear(Slot x, Slot weight, std::optional<Slot> bias) {
  if (!known(x) || !is_fixed(weight) || (bias && !is_fixed(*bias))) return -1;
  Shape shape = this->shape(x);
  const Shape w = this->shape(weight);
  if (shape.empty() || w.size() != 2 || w[1] != shape.back()) return -1;
  if (is_batch(x) && shape.size() < 2) return -1;
  shape.back() = w[0];
  const Axes axes = is_batch(x) ? product_axes(x) : Axes();
  if (is_batch(x) && info(weight).packed)
    return add("packed_linear",
               {.in = {relayout(x, axes)},
                .weight = weight,
                .bias = bias.value_or(-1),
                .payload = PackedLinearPayload{}},
               shape, Layout::batch, axes);
  Primitive primitive{.in = {relayout(x, axes)},
                      .weight = weight,
                      .bias = bias.value_or(-1),
                      .payload = LinearPayload{}};
  primitive.as<LinearPayload>().backward = round_backward(primitive, x, axes);
  return add("linear", std::move(primitive), shape, plan_.at(x).layout, axes);
}

Axes Lowerer::product_axes(Slot x) const {
  const size_t rank = plan_.at(x).shape.size();
  const auto axes = ending_with(plan_.at(x), {static_cast<int>(rank) - 1});
  // One sample's positions are lanes too, so that a batch of one fills the vectors.
  return axes && (rank == 2 || axes->lanes.size() > 1) ? *axes : Axes::sequence(rank);
}

Slot Lowerer::lane_matmul(Slot a, Slot b, const Shape& shape) {
  const int rank = static_cast<int>(shape.size());
  Axes inner, outer;  // the last axis as row, or the one before it
  for (int axis = 1; axis < rank - 2; ++axis) inner.rows.push_back(axis);
  outer = inner;
  inner.rows.push_back(rank - 1);
  inner.lanes = {0, rank - 2};
  outer.rows.push_back(rank - 2);
  outer.lanes = {0, rank - 1};
  const TensorInfo& right = plan_.at(b);
  const bool rows_are_k = same_memory(right.shape, right.axes, outer);
  const Slot left_rows = relayout(a, inner);
  const Slot right_rows = relayout(b, rows_are_k ? outer : inner);
  return add("lane_matmul",
             {.in = {left_rows, right_rows}, .payload = LaneMatmulPayload{rows_are_k}}, shape,
             Layout::batch, inner);
}

Slot Lowerer::matmul(Slot a, Slot b) {
  if (!known(a) || !known(b)) return -1;
  const Shape as = shape(a), bs = shape(b);
  if (as.size() < 2 || bs.size() < 2 || as.back() != bs[bs.size() - 2]) return -1;
  if (is_batch(a) && is_fixed(b) && bs.size() == 2) {
    Shape result = as;
    result.back() = bs[1];
    a = relayout(a, product_axes(a));
    return add("linear", {.in = {a}, .weight = b, .payload = LinearPayload{.transposed = true}},
               result, Layout::batch, plan_.at(a).axes);
  }
  const bool batch = is_batch(a) || is_batch(b);
  const auto lead =
      broadcast_shape(Shape(as.begin(), as.end() - 2), Shape(bs.begin(), bs.end() - 2));
  if (!lead) return -1;
  Shape result = *lead;
  result.push_back(as[as.size() - 2]);
  result.push_back(bs.back());
  if (batch) {
    for (const Slot side : {a, b}) {
      const Shape& own = shape(side);
      if (is_batch(side) ? own.size() != result.size() || result.size() < 3
                         : own.size() == result.size() && own[0] != 1)
        return -1;
    }
    // Few positions leave most of a vector empty: then the samples multiply side by side.
    constexpr int64_t fewest = 8;
    if (is_batch(a) && is_batch(b) && as[as.size() - 2] >= fewest) return lane_matmul(a, b, result);
  }
  return add("matmul", {.in = {flat(a), flat(b)}, .payload = MatmulPayload{}}, result,
             batch ? Layout::batch : Layout::fixed, Axes::flat(result.size()));
}

Slot Lowerer::reduce(ReduceKind kind, Slot x, const std::vector<int64_t>& dims, bool keep_dims) {
  if (!known(x)) return -1;
  const Shape from = shape(x);
  std::set<int64_t> wanted;
  for (const int64_t dim : dims) wanted.insert(from_front(dim, from.size()));
  if (dims.empty())
    for (size_t i = 0; i < from.size(); ++i) wanted.insert(static_cast<int64_t>(i));
  if (is_batch(x) && wanted.count(0)) return -1;
  Shape result;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!wanted.count(static_cast<int64_t>(i)))
      result.push_back(from[i]);
    else if (keep_dims)
      result.push_back(1);
  }
  ReducePayload payload{kind, {}};
  if (!is_batch(x)) {
    for (const int64_t dim : wanted) payload.rows.push_back(static_cast<int>(dim));
    return add("reduce", {.in = {x}, .payload = payload}, result, Layout::fixed);
  }
  const auto places = [&](const TensorInfo& info) {
    std::vector<int> rows;
    for (const int64_t dim : wanted)
      if (const int place = info.row_place(dim); place >= 0) rows.push_back(place);
    return rows;
  };
  payload.rows = places(plan_.at(x));
  const bool in_rows = payload.rows.size() == wanted.size();
  const bool in_lanes = payload.rows.empty() && !wanted.empty() && kind != ReduceKind::max &&
                        wanted.size() + 1 == plan_.at(x).axes.lanes.size();
  if (!in_rows && !in_lanes) {
    x = flat(x);
    payload.rows = places(plan_.at(x));
  }
  if (payload.rows.empty() && !in_lanes) return x;  // over no dimension
  Axes axes = plan_.at(x).axes;
  if (in_lanes) {
    axes.lanes = {0};
    if (keep_dims)
      for (const int64_t dim : wanted) axes.rows.push_back(static_cast<int>(dim));
  }
  if (!keep_dims) axes = without(axes, wanted);
  return add("reduce", {.in = {x}, .payload = payload}, result, Layout::batch, axes);
}

Slot Lowerer::reshape(Slot x, const Shape& wanted) {
  if (!known(x)) return -1;
  Shape result = wanted;
  const int64_t total = element_count(shape(x));
  int64_t fixed = 1;
  const auto open = std::find(result.begin(), result.end(), -1);
  for (const int64_t dim : result)
    if (dim >= 0) fixed *= dim;
  if (open != result.end()) {
    if (fixed <= 0 || total % fixed != 0) return -1;
    *open = total / fixed;
  }
  if (element_count(result) != total) return -1;
  if (is_fixed(x)) return view(x, result, {});
  if (result.empty() || result[0] != shape(x)[0]) return -1;
  if (const auto axes = reshaped_axes(shape(x), plan_.at(x).axes, result))
    return view(x, result, *axes);
  return view(flat(x), result, Axes::flat(result.size()));
}

Slot Lowerer::permute(Slot x, const std::vector<int64_t>& order) {
  if (!known(x) || order.size() != shape(x).size()) return -1;
  PermutePayload payload;
  Shape result;
  for (const int64_t dim : order) {
    payload.order.push_back(from_front(dim, order.size()));
    result.push_back(shape(x)[static_cast<size_t>(payload.order.back())]);
  }
  if (is_fixed(x)) return add("permute", {.in = {x}, .payload = payload}, result, Layout::fixed);
  if (payload.order[0] != 0) return -1;
  return view(x, result, permuted_axes(plan_.at(x).axes, payload.order));
}

Slot Lowerer::concat(const std::vector<Slot>& parts, int64_t dim) {
  if (parts.empty() || !known(parts[0])) return -1;
  Shape result = shape(parts[0]);
  const int64_t axis = from_front(dim, result.size());
  const Layout layout = plan_.at(parts[0]).layout;
  if (layout == Layout::batch && axis == 0) return -1;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (!is(parts[i], layout)) return -1;
    result[static_cast<size_t>(axis)] += shape(parts[i])[static_cast<size_t>(axis)];
  }
  Primitive primitive{.in = parts};
  Axes axes;
  if (layout == Layout::batch) {
    axes = plan_.at(parts[0]).axes;
    if (plan_.at(parts[0]).row_place(axis) < 0) axes = Axes::flat(result.size());
    for (Slot& part : primitive.in) part = relayout(part, axes);
  }
  primitive.payload = ConcatPayload{plan_.at(primitive.in[0]).row_place(axis)};
  return add("concat", std::move(primitive), result, layout, axes);
}

Slot Lowerer::slice(Slot x, int64_t dim, int64_t start, int64_t step, int64_t count) {
  if (!known(x)) return -1;
  Shape result = shape(x);
  const auto axis = static_cast<size_t>(from_front(dim, result.size()));
  if (is_batch(x) && axis == 0) return -1;
  if (start == 0 && step == 1 && count == result[axis]) return x;
  result[axis] = count;
  return add("slice", {.in = {x}, .payload = SlicePayload{axis, start, step}}, result,
             plan_.at(x).layout, plan_.at(x).axes);
}

Slot Lowerer::take(Slot table, Slot indices) { return take_rows(table, indices, -1); }

Slot Lowerer::take_rows(Slot table, Slot indices, int64_t untrained) {
  if (!is_fixed(table) || !is_batch(indices) || shape(table).size() != 2) return -1;
  Shape result = shape(indices);
  result.push_back(shape(table)[1]);
  // The numbers as one row of all lanes.
  const size_t rank = shape(indices).size();
  indices = relayout(indices, Axes::sequence(rank, 0));
  if (info(table).packed)
    return add("packed_take", {.in = {indices}, .weight = table, .payload = PackedTakePayload{}},
               result, Layout::batch, Axes::sequence(result.size()));
  return add("take", {.in = {indices}, .weight = table, .payload = TakePayload{untrained}}, result,
             Layout::batch, Axes::sequence(result.size()));
}

// The backward pass rounds what came before the forward pass rounded it.
const Quantization* Lowerer::round_backward(Primitive& product, Slot x, const Axes& axes) {
  if (!training() || !node_) return nullptr;
  const Quantization& quantization = plan_.graph().quantization_of(*node_);
  if (quantization.backward.empty()) return nullptr;
  const int before = plan_.at(x).before_rounding;
  product.params.emplace_back("unrounded", relayout(before >= 0 ? before : x, axes));
  rounds_backward_ = true;
  return &quantization;
}

Slot Lowerer::convolution(Slot x, Slot weight, std::optional<Slot> bias,
                          const Convolution& options) {
  if (!is_batch(x) || !is_fixed(weight) || (bias && !is_fixed(*bias))) return -1;
  const size_t rank = shape(x).size();
  if (rank < 3 || rank > 4 || shape(weight).size() != rank) return -1;
  const Windows& w = options.windows;
  Shape result = {shape(x)[0], shape(weight)[0]};
  for (size_t i = 0; i + 2 < rank; ++i) {
    const int64_t size = shape(x)[i + 2] + w.padding_before[i] + w.padding_after[i];
    result.push_back((size - w.dilation[i] * (w.kernel[i] - 1) - 1) / w.stride[i] + 1);
  }
  const Axes axes = Axes::channels(rank);
  Primitive primitive{.in = {relayout(x, axes)},
                      .weight = weight,
                      .bias = bias.value_or(-1),
                      .payload = ConvolutionPayload{options}};
  primitive.as<ConvolutionPayload>().backward = round_backward(primitive, x, axes);
  return add("convolution", std::move(primitive), result, Layout::batch, axes);
}

Slot Lowerer::transposed_convolution(Slot x, Slot weight, std::optional<Slot> bias,
                                     const Convolution& options, const Shape& positions) {
  if (!is_batch(x) || !is_fixed(weight) || (bias && !is_fixed(*bias))) return -1;
  const size_t rank = shape(x).size();
  if (rank < 3 || rank > 4 || shape(weight).size() != rank) return -1;
  Shape result = {shape(x)[0], shape(weight)[1] * options.groups};
  result.insert(result.end(), positions.begin(), positions.end());
  const Axes axes = Axes::channels(rank);
  ConvolutionPayload payload{options};
  payload.transposed = true;
  Primitive primitive{.in = {relayout(x, axes)},
                      .weight = weight,
                      .bias = bias.value_or(-1),
                      .payload = std::move(payload)};
  primitive.as<ConvolutionPayload>().backward = round_backward(primitive, x, axes);
  return add("convolution", std::move(primitive), result, Layout::batch, axes);
}

Slot Lowerer::pool(PoolKind kind, Slot x, const Windows& windows, bool count_padding,
                   const Shape& positions) {
  if (!is_batch(x)) return -1;
  const size_t rank = shape(x).size();
  if (rank < 3 || rank > 4) return -1;
  Shape result = {shape(x)[0], shape(x)[1]};
  result.insert(result.end(), positions.begin(), positions.end());
  const Axes axes = Axes::channels(rank);
  return add("pool",
             {.in = {relayout(x, axes)}, .payload = PoolPayload{kind, windows, count_padding}},
             result, Layout::batch, axes);
}

Slot Lowerer::batch_norm(Slot x, const BatchNorm& options) {
  if (!is_batch(x) || shape(x).size() < 2) return -1;
  for (const auto& tensor : {options.weight, options.bias})
    if (tensor && !is_fixed(*tensor)) return -1;
  const std::vector<int>& rows = plan_.at(x).axes.rows;
  if (rows.empty() || rows[0] != 1) x = relayout(x, Axes::channels(shape(x).size()));
  BatchNormPayload payload;
  payload.running_mean = options.running_mean.value_or(-1);
  payload.running_var = options.running_var.value_or(-1);
  payload.tracked = options.batches_tracked.value_or(-1);
  payload.eps = options.eps;
  payload.momentum = options.momentum;
  payload.batch_statistics = (training() && !plan_.options.freeze_batch_norm) ||
                             payload.running_mean < 0 || payload.running_var < 0;
  return add("batch_norm",
             {.in = {x},
              .weight = options.weight.value_or(-1),
              .bias = options.bias.value_or(-1),
              .payload = payload},
             shape(x), Layout::batch, plan_.at(x).axes);
}

Slot Lowerer::layer_norm(Slot x, int64_t dims, std::optional<Slot> weight, std::optional<Slot> bias,
                         double eps) {
  if (!known(x) || (weight && !is_fixed(*weight)) || (bias && !is_fixed(*bias))) return -1;
  const size_t rank = shape(x).size(), features = static_cast<size_t>(dims);
  if (features + (is_batch(x) ? 1 : 0) > rank) return -1;
  if (is_batch(x)) {
    std::vector<int> last;
    for (size_t i = rank - features; i < rank; ++i) last.push_back(static_cast<int>(i));
    const auto axes = ending_with(plan_.at(x), last);
    x = relayout(x, axes ? *axes : Axes::sequence(rank, features));
  }
  return add("layer_norm",
             {.in = {x},
              .weight = weight.value_or(-1),
              .bias = bias.value_or(-1),
              .payload = LayerNormPayload{dims, eps}},
             shape(x), plan_.at(x).layout, plan_.at(x).axes);
}

Slot Lowerer::softmax(Slot x, int64_t dim, bool logarithm) {
  if (!known(x)) return -1;
  const int64_t axis = from_front(dim, shape(x).size());
  if (is_batch(x)) {
    if (axis == 0) return -1;
    if (plan_.at(x).row_place(axis) < 0) {
      Axes axes;
      axes.rows = {static_cast<int>(axis)};
      for (size_t i = 0; i < shape(x).size(); ++i)
        if (static_cast<int64_t>(i) != axis) axes.lanes.push_back(static_cast<int>(i));
      x = relayout(x, axes);
    }
  }
  return add("softmax",
             {.in = {x}, .payload = SoftmaxPayload{plan_.at(x).row_place(axis), logarithm}},
             shape(x), plan_.at(x).layout, plan_.at(x).axes);
}

Slot Lowerer::dropout(Slot x, double probability) {
  if (!training() || probability <= 0) return x;
  if (!known(x)) return -1;
  return add("dropout", {.in = {x}, .payload = DropoutPayload{probability}}, shape(x),
             plan_.at(x).layout, plan_.at(x).axes);
}

Slot Lowerer::constant(const Shape& shape, const std::vector<float>& values) {
  if (element_count(shape) != static_cast<int64_t>(values.size())) return -1;
  return add("constant",
             {.payload = ConstantPayload{std::make_shared<const std::vector<float>>(values)}},
             shape, Layout::fixed);
}

Slot Lowerer::one_hot(Slot labels, int64_t classes) {
  if (!is_batch(labels) || plan_.at(labels).element != DType::i32 || classes < 1) return -1;
  return add("one_hot", {.in = {labels}, .payload = OneHotPayload{}},
             {plan_.options.batch_size, classes}, Layout::batch, Axes::flat(2));
}

Slot Lowerer::batch_mean(Slot x, std::optional<Slot> weights) {
  if (!is_batch(x)) return -1;
  Primitive primitive{.in = {x}};
  if (weights) {
    if (!is_batch(*weights) || plan_.at(*weights).differentiable) return -1;
    primitive.in.push_back(*weights);
  }
  primitive.payload = BatchMeanPayload{plan_.scratch("share", 1)};
  return add("batch_mean", std::move(primitive), {}, Layout::fixed);
}

Slot Lowerer::cross_entropy(Slot logits, Slot labels, std::optional<Slot> class_weights) {
  if (!is_batch(logits) || shape(logits).size() < 2 || !is_batch(labels)) return -1;
  if (plan_.at(labels).element != DType::i32) return -1;
  if (shape(labels).size() + 1 != shape(logits).size()) return -1;
  Primitive primitive{.in = {relayout(logits, Axes::sequence(shape(logits).size())), labels},
                      .payload = CrossEntropyPayload{}};
  if (class_weights) {
    if (shape(*class_weights) != Shape{shape(logits).back()}) return -1;
    primitive.in.push_back(*class_weights);
  }
  return add("cross_entropy", std::move(primitive), {}, Layout::fixed);
}

}  // namespace mase::engine
