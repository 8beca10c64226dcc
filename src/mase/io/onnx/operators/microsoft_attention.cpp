// SPDX-License-Identifier: Apache-2.0
// onnxruntime's attention, which its optimiser makes of projections, heads and their products:
//
//   Attention(x, weights of queries, keys and values side by side)
//     =>   Linear, its thirds, scaled_dot_product_attention
#include <algorithm>
#include <cmath>

#include "mase/io/onnx/read/heads.h"
#include "mase/io/onnx/read/products.h"

namespace mase::onnx::microsoft_attention_operators {
namespace {

void refuse(NodeContext& context, std::initializer_list<size_t> inputs, const char* what) {
  for (const size_t index : inputs)
    if (context.has(index)) context.fail(what);
}

Operand part(NodeContext& context, const Operand& x, int64_t start, int64_t length) {
  return context.call(
      "narrow", {x},
      Dict{{"dim", static_cast<int64_t>(x.rank()) - 1}, {"start", start}, {"length", length}});
}

// 1 where a key may be seen, [batch, keys]: numbers to add to scores [batch, heads, length, keys].
Operand padding(NodeContext& context, const Operand& mask, int64_t keys) {
  if (mask.rank() != 2 || mask.shape[1] != keys)
    context.fail(fmt::format("a mask {}: only [batch, {}] is read", shape_text(mask.shape), keys));
  const double hidden = context.number("mask_filter_value", -10000);
  Operand given = mask;
  given.element = Element::f32;
  const Operand above = context.call("sub", {given, context.scalar(1)});
  Operand added = context.call("mul", {above, context.scalar(-hidden)});
  added.element = Element::f32;
  return context.reshape(added, {mask.shape[0], 1, 1, keys});
}

struct Masks {
  size_t keys, scores;  // inputs: of keys that are no padding, of what is added to scores
};

// Of [batch, length, features] each.
Operand attended(NodeContext& context, const Operand& queries, const Operand& keys,
                 const Operand& values, const Masks& masks) {
  const int64_t heads = context.integer("num_heads", 0);
  const Operand q = split_heads(context, queries, heads), k = split_heads(context, keys, heads),
                v = split_heads(context, values, heads);
  std::optional<Operand> mask;
  if (context.has(masks.keys)) mask = padding(context, context.input(masks.keys), k.shape[2]);
  if (context.has(masks.scores)) {
    const Operand& added = context.input(masks.scores);
    mask = mask ? context.call("add", {*mask, added}) : added;
  }
  const bool causal = context.integer("unidirectional", 0) != 0;
  if (causal && (mask || k.shape[2] != q.shape[2]))
    context.fail("later positions are hidden, and others too");
  Dict attributes{{"is_causal", causal}};
  if (const double scale = context.number("scale", 0); scale != 0) attributes.set("scale", scale);
  std::vector<Operand> inputs = {q, k, v};
  if (mask) inputs.push_back(*mask);
  return joined_heads(context, context.call("scaled_dot_product_attention", inputs, attributes));
}

void attention(NodeContext& context) {
  refuse(context, {4, 6}, "keys and values of the past");
  if (context.output_is_used(1)) context.fail("its keys and values are asked for");
  if (context.integer("do_rotary", 0) != 0) context.fail("it turns queries and keys");
  const Operand &x = context.input(0), &weights = context.input(1);
  context.constant(1, "the weights");
  if (x.rank() != 3 || weights.rank() != 2) context.fail("its input is no sequence");
  std::vector<int64_t> sizes = context.integer_list("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, weights.shape[1] / 3);
  // No part is wider than the whole: their sum cannot overflow.
  const bool possible = std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) {
    return size >= 1 && size <= weights.shape[1];
  });
  if (!possible || sizes.size() != 3 || sizes[0] != sizes[1] ||
      sizes[0] + sizes[1] + sizes[2] != weights.shape[1])
    context.fail(fmt::format("weights {} are not three parts", shape_text(weights.shape)));
  std::optional<Operand> bias;
  if (context.has(2)) {
    if (context.constant(2, "the bias").numel() != weights.shape[1])
      context.fail("its bias has not one number for each feature");
    bias = context.input(2);
  }
  const Operand all = linear(context, x, turned_weight(context, weights), bias ? &*bias : nullptr);
  context.result(
      0, attended(context, part(context, all, 0, sizes[0]), part(context, all, sizes[0], sizes[1]),
                  part(context, all, sizes[0] + sizes[1], sizes[2]), {.keys = 3, .scores = 5}));
}

void multi_head_attention(NodeContext& context) {
  refuse(context, {6, 7, 8, 9}, "keys and values of the past");
  for (size_t i = 1; i < 4; ++i)
    if (context.output_is_used(i)) context.fail("its keys, values or scores are asked for");
  if (!context.has(1) || !context.has(2) || context.input(0).rank() != 3)
    context.fail("queries, keys and values stand in one tensor");
  Operand parts[] = {context.input(0), context.input(1), context.input(2)};
  if (context.has(3)) {  // of all three, side by side
    int64_t start = 0;
    for (Operand& x : parts) {
      if (x.rank() != 3) context.fail("its keys and values are split into heads already");
      const int64_t length = x.shape[2];
      if (context.input(3).rank() != 1 || start + length > context.input(3).shape[0])
        context.fail("its bias is too short");
      x = context.call("add", {x, part(context, context.input(3), start, length)});
      start += length;
    }
  }
  context.result(0, attended(context, parts[0], parts[1], parts[2], {.keys = 4, .scores = 5}));
}

const Register<OnnxOperator> attention_operator{
    {.name = "com.microsoft::Attention",
     .summary = "Linear and scaled_dot_product_attention",
     .convert = attention}};
const Register<OnnxOperator> multi_head_operator{{.name = "com.microsoft::MultiHeadAttention",
                                                  .summary = "scaled_dot_product_attention",
                                                  .convert = multi_head_attention}};

}  // namespace
}  // namespace mase::onnx::microsoft_attention_operators
