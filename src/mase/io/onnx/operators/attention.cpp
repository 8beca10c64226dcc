// SPDX-License-Identifier: Apache-2.0
// Attention and RotaryEmbedding (operator sets 23 and 24). Attention is PyTorch's
// scaled_dot_product_attention where that says all of it; with keys and values of the past, a soft
// cap or scores that are asked for it is written in its parts.
#include <cfloat>
#include <cmath>

#include "mase/io/onnx/read/heads.h"
#include "mase/io/onnx/read/tensor_moves.h"

namespace mase::onnx::attention_operators {
namespace {

Operand turned(NodeContext& context, const Operand& x, const Shape& order) {
  return context.call("permute", {x}, Dict{{"dims", Value::of(order)}});
}

// Each head of keys and values for `times` heads of queries.
Operand repeated(NodeContext& context, const Operand& x, int64_t times) {
  if (times == 1) return x;
  constexpr int64_t most = int64_t{1} << 16;
  if (x.shape[1] > most / times) context.fail("it has too many heads");
  std::vector<int64_t> places;
  for (int64_t h = 0; h < x.shape[1] * times; ++h) places.push_back(h / times);
  const Operand index = context.constant_operand(
      Tensor::of<int64_t>({static_cast<int64_t>(places.size())}, std::span<const int64_t>(places)));
  return context.call("index_select", {x, index}, Dict{{"dim", 1}});
}

// -inf where a query must not look: later positions; `past` keys stand before the first query.
Tensor causal_mask(const NodeContext& context, int64_t length, int64_t keys, int64_t past) {
  constexpr int64_t most = int64_t{1} << 22;
  if (keys > 0 && length > most / keys) context.fail("its mask is too large");
  Tensor mask(Shape{length, keys});
  for (int64_t i = 0; i < length; ++i)
    for (int64_t k = past + i + 1; k < keys; ++k)
      mask.mutable_data<float>()[i * keys + k] = -INFINITY;
  return mask;
}

// The mask as numbers to add, with as many keys as there are: a shorter one hides the others.
std::optional<Operand> added_mask(NodeContext& context, int64_t keys) {
  if (!context.has(3)) return {};
  Operand mask = context.input(3);
  if (mask.rank() < 2) context.fail("its mask is no matrix");
  if (mask.element == Element::boolean) {  // true: may be seen
    mask = context.call("where", {mask, context.scalar(0), context.scalar(-INFINITY)});
    mask.element = Element::f32;
    if (mask.is_constant()) mask = context.constant_operand(mask.constant->tensor.to(DType::f32));
  }
  if (mask.shape.back() < keys)
    mask = context.call(
        "pad", {mask},
        Dict{{"pad", Value::of(Shape{0, keys - mask.shape.back()})}, {"value", -INFINITY}});
  return mask;
}

void attention(NodeContext& context) {
  Operand q = context.input(0), k = context.input(1), v = context.input(2);
  const bool joined = q.rank() == 3;
  if (joined) {
    q = split_heads(context, q, context.integer("q_num_heads", 0));
    k = split_heads(context, k, context.integer("kv_num_heads", 0));
    v = split_heads(context, v, context.integer("kv_num_heads", 0));
  }
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || k.shape[1].number() < 1 ||
      q.shape[1].number() % k.shape[1].number() != 0)
    context.fail(fmt::format("queries {}, keys {}, values {}", shape_text(q.shape),
                             shape_text(k.shape), shape_text(v.shape)));
  int64_t past = 0;
  if (context.has(4) != context.has(5)) context.fail("only one of past keys and values is given");
  if (context.has(4)) {
    if (context.input(4).rank() != 4) context.fail("the keys of the past have no heads");
    past = context.input(4).shape[2];
    k = context.call("cat", {context.input(4), k}, Dict{{"dim", 2}});
    v = context.call("cat", {context.input(5), v}, Dict{{"dim", 2}});
  }
  context.result(1, k);
  context.result(2, v);
  const int64_t keys = k.shape[2], length = q.shape[2];
  const double softcap = context.number("softcap", 0);
  const bool causal = context.integer("is_causal", 0) == 1;
  const double scale =
      context.number("scale", 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, q.shape[3]))));
  auto mask = added_mask(context, keys);
  if (context.has(6)) {  // so many keys of each entry of the batch are no padding
    if (context.input(6).rank() != 1) context.fail("the lengths of its keys are no list");
    constexpr int64_t most = int64_t{1} << 20;
    if (keys > most) context.fail("it has too many keys");
    std::vector<int64_t> places;
    for (int64_t i = 0; i < keys; ++i) places.push_back(i);
    const Operand count = context.reshape(context.input(6), {context.input(6).shape[0], 1, 1, 1});
    const Operand seen =
        context.call("lt", {context.constant_operand(Tensor::of<int64_t>(
                                {1, 1, 1, keys}, std::span<const int64_t>(places))),
                            count});
    Operand padding = context.call("where", {seen, context.scalar(0), context.scalar(-INFINITY)});
    padding.element = Element::f32;
    mask = mask ? context.call("add", {*mask, padding}) : padding;
  }
  const int64_t times = q.shape[1] / k.shape[1];
  const bool plain_mask = !mask || times == 1;
  const auto finish = [&](const Operand& result) {
    context.result(0, joined ? joined_heads(context, result) : result);
  };
  if (softcap == 0 && past == 0 && !context.output_is_used(3) && plain_mask) {
    Dict attributes{{"is_causal", causal}};
    if (context.has_attribute("scale")) attributes.set("scale", scale);
    std::vector<Operand> inputs = {q, k, v};
    if (mask) {
      if (mask->rank() == 3)  // [heads or 1, L, S]
        mask = context.reshape(*mask, {1, mask->shape[0], mask->shape[1], mask->shape[2]});
      inputs.push_back(*mask);
    }
    return finish(context.call("scaled_dot_product_attention", inputs, attributes));
  }
  k = repeated(context, k, times);
  v = repeated(context, v, times);
  const int64_t asked = context.integer("qk_matmul_output_mode", 0);
  Operand scores = context.call("matmul", {q, turned(context, k, {0, 1, 3, 2})});
  scores = context.call("mul", {scores, context.scalar(scale)});
  if (asked == 0) context.result(3, scores);
  // Operator set 24's order: cap, then mask.
  if (softcap > 0) {
    scores = context.call("tanh", {context.call("div", {scores, context.scalar(softcap)})});
    scores = context.call("mul", {scores, context.scalar(softcap)});
  }
  if (asked == 1) context.result(3, scores);
  std::vector<Operand> added;
  if (mask) added.push_back(*mask);
  if (causal) added.push_back(context.constant_operand(causal_mask(context, length, keys, past)));
  for (const Operand& hidden : added) scores = context.call("add", {scores, hidden});
  if (asked == 2) context.result(3, scores);
  const Operand shares = context.call("softmax", {scores}, Dict{{"dim", 3}});
  if (asked == 3) context.result(3, shares);
  const Operand mixed = context.call("matmul", {shares, v});
  if (!mask) return finish(mixed);
  // A query from which all keys are hidden gives zeros, where softmax gives NaN.
  if (causal) mask = context.call("add", {added[0], added[1]});
  const Operand most = context.call("max", {*mask}, Dict{{"dim", -1}, {"keepdim", true}});
  const Operand blind = context.call("lt", {most, context.scalar(-FLT_MAX)});
  finish(context.call("where", {blind, context.scalar(0), mixed}));
}

// The turned pairs: x cos - y sin, y cos + x sin.
void rotary_embedding(NodeContext& context) {
  Operand x = context.input(0);
  const bool joined = x.rank() == 3;
  if (joined) x = split_heads(context, x, context.integer("num_heads", 0));
  if (x.rank() != 4) context.fail(fmt::format("an input {}", shape_text(x.shape)));
  const int64_t width = x.shape[3];
  int64_t part = context.integer("rotary_embedding_dim", 0);
  if (part == 0) part = width;
  if (part < 2 || part > width || part % 2 != 0)
    context.fail(fmt::format("{} of {} features are turned", part, width));
  const int64_t half = part / 2;
  const auto piece = [&](const Operand& from, int64_t start, int64_t length) {
    if (start == 0 && length == from.shape[3]) return from;
    return context.call("narrow", {from}, Dict{{"dim", 3}, {"start", start}, {"length", length}});
  };
  // Tables of all positions, or rows for those that are there: [batch, length, half].
  const auto angles = [&](size_t index) {
    Operand table = context.input(index);
    if (context.has(3)) {
      const Operand& places = context.input(3);
      if (!table.is_constant() || table.rank() != 2)
        context.fail("its tables are computed while the network runs");
      if (places.is_constant()) {
        std::vector<int64_t> rows = context.integers(3, "the positions");
        for (const int64_t row : rows)
          if (row < 0 || row >= table.shape[0])
            context.fail(fmt::format("position {} of {}", row, table.shape[0]));
        table = context.like(
            table, gathered(context.materialized(table).constant->tensor, 0, rows, places.shape));
      } else {
        table = context.layer("embedding",
                              Dict{{"num_embeddings", table.shape[0].number()},
                                   {"embedding_dim", table.shape[1].number()}},
                              {{"weight", table}}, places);
      }
    }
    if (table.rank() != 3 || table.shape[2] != half)
      context.fail(fmt::format("a table {} for {} pairs", shape_text(table.shape), half));
    return context.reshape(table, {table.shape[0], 1, table.shape[1], table.shape[2]});
  };
  const Operand c = angles(1), s = angles(2);
  Operand first, second;
  const bool interleaved = context.integer("interleaved", 0) != 0;
  const Operand turning = piece(x, 0, part);
  if (interleaved) {
    const Operand pairs = context.reshape(turning, {x.shape[0], x.shape[1] * x.shape[2], half, 2});
    const auto of_pair = [&](int64_t which) {
      const Operand one =
          context.call("narrow", {pairs}, Dict{{"dim", 3}, {"start", which}, {"length", 1}});
      return context.reshape(one, {x.shape[0], x.shape[1], x.shape[2], half});
    };
    first = of_pair(0);
    second = of_pair(1);
  } else {
    first = piece(turning, 0, half);
    second = piece(turning, half, half);
  }
  const auto product = [&](const Operand& a, const Operand& b) {
    return context.call("mul", {a, b});
  };
  Operand real = context.call("sub", {product(first, c), product(second, s)});
  Operand imaginary = context.call("add", {product(first, s), product(second, c)});
  Operand result;
  if (interleaved) {
    const Sizes apart = {x.shape[0], x.shape[1] * x.shape[2], half, 1};
    result = context.call("cat", {context.reshape(real, apart), context.reshape(imaginary, apart)},
                          Dict{{"dim", 3}});
    result = context.reshape(result, {x.shape[0], x.shape[1], x.shape[2], part});
  } else {
    result = context.call("cat", {real, imaginary}, Dict{{"dim", 3}});
  }
  if (part < width)
    result = context.call("cat", {result, piece(x, part, width - part)}, Dict{{"dim", 3}});
  context.result(0, joined ? joined_heads(context, result) : result);
}

const Register<OnnxOperator> registered{
    {.name = "Attention", .summary = "scaled_dot_product_attention", .convert = attention}};
const Register<OnnxOperator> rotary_operator{{.name = "RotaryEmbedding",
                                              .summary = "products with sines and cosines",
                                              .convert = rotary_embedding}};

}  // namespace
}  // namespace mase::onnx::attention_operators
