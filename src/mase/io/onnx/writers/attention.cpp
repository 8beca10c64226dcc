// SPDX-License-Identifier: Apache-2.0
// Attention in its parts: Attention itself came with operator set 23.
#include <array>
#include <cmath>

#include "mase/io/onnx/write/writer.h"

namespace mase::onnx::attention_writers {
namespace {

std::string reshaped(WriteContext& c, const std::string& x, const std::vector<int64_t>& sizes) {
  return c.add("Reshape", {x, c.integers("sizes", sizes)});
}

std::string turned(WriteContext& c, const std::string& x, const std::vector<int64_t>& order) {
  return c.add("Transpose", {x}, {integers_attribute("perm", order)});
}

// Scores that hide later positions.
std::string without_later(WriteContext& c, const std::string& scores, int64_t length,
                          int64_t keys) {
  Tensor mask = c.table({length, keys});
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = i + 1; j < keys; ++j) mask.mutable_data<float>()[i * keys + j] = -INFINITY;
  return c.add("Add", {scores, c.constant(fmt::format("causal_{}x{}", length, keys), mask)});
}

std::string shares_of(WriteContext& c, const std::string& scores) {
  return c.add("Softmax", {scores}, {integer_attribute("axis", -1)});
}

// softmax(q k^T scale + mask) v
void attention(WriteContext& c) {
  const Shape &q = c.input_shape(0), &k = c.input_shape(1);
  const size_t rank = q.size();
  // Heads that share keys: [.., groups, heads of a group, L, E] with one head of k and v.
  const bool shared = rank > 3 && q[rank - 3] != k[rank - 3];
  const int64_t groups = rank > 3 ? k[rank - 3] : 1;
  const auto grouped = [&](const std::string& x, const Shape& shape) {
    if (!shared || shape.size() < 3) return x;
    std::vector<int64_t> sizes(shape.size() - 3, 0);  // as they are
    const int64_t heads = shape[shape.size() - 3];
    sizes.insert(sizes.end(), {heads == 1 ? 1 : groups, heads == 1 ? 1 : heads / groups,
                               shape[shape.size() - 2], shape[shape.size() - 1]});
    return reshaped(c, x, sizes);
  };
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank + (shared ? 1 : 0); ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const double scale = c["scale"].is_null() ? 1 / std::sqrt(static_cast<double>(q[rank - 1]))
                                            : c["scale"].as_double();
  const std::string queries = grouped(c.input(0), q),
                    keys = turned(c, grouped(c.input(1), k), order),
                    values = grouped(c.input(2), c.input_shape(2));
  std::string scores = c.add("Mul", {c.add("MatMul", {queries, keys}), c.number(scale)});
  if (c["is_causal"].as_bool()) scores = without_later(c, scores, q[rank - 2], k[rank - 2]);
  const bool masked = c.input_count() > 3;
  if (masked) scores = c.add("Add", {scores, grouped(c.input(3), c.input_shape(3))});
  std::string shares = shares_of(c, scores);
  if (masked)  // a query that sees no key gives zeros, as PyTorch's exporter writes it too
    shares = c.add("Where", {c.add("IsNaN", {shares}), c.number(0), shares});
  std::string result = c.add("MatMul", {shares, values});
  if (shared) {
    std::vector<int64_t> sizes(rank - 3, 0);
    sizes.insert(sizes.end(), c.shape().end() - 3, c.shape().end());
    result = reshaped(c, result, sizes);
  }
  c.result(result);
}

// The rows of the query's, key's or value's part of the joint projection, as a layer of its own.
std::string projected(WriteContext& c, const std::string& x, int64_t which, int64_t width) {
  const std::string name =
      fmt::format("{}.{}_proj", c.path(), std::array{"q", "k", "v"}.at(static_cast<size_t>(which)));
  const TensorView rows{.first = which * width, .rows = width};
  TensorView columns = rows;
  columns.order = {1, 0};
  const std::string y =
      c.add("MatMul", {x, c.parameter("in_proj_weight", columns, name + ".weight")});
  if (!c.has_parameter("in_proj_bias")) return y;
  return c.add("Add", {y, c.parameter("in_proj_bias", rows, name + ".bias")});
}

void multihead_attention(WriteContext& c) {
  const int64_t width = c["embed_dim"].as_int(), heads = c["num_heads"].as_int();
  const bool batch_first = c["batch_first"].as_bool();
  const std::vector<int64_t> swapped = {1, 0, 2};  // [L, N, E] <=> [N, L, E]
  std::vector<std::string> parts;
  for (const int64_t i : {0, 1, 2}) {
    std::string x = c.input(static_cast<size_t>(i));
    if (!batch_first) x = turned(c, x, swapped);
    x = reshaped(c, projected(c, x, i, width), {0, 0, heads, width / heads});
    const bool rounds = c.has_format("projected");
    x = turned(c, x, i == 1 && !rounds ? Shape{0, 2, 3, 1} : Shape{0, 2, 1, 3});
    if (rounds) {
      const Shape& given = c.input_shape(static_cast<size_t>(i));
      const size_t batch = batch_first ? 0 : 1;
      x = c.rounded(x, "projected", {given[batch], heads, given[1 - batch], width / heads});
      if (i == 1) x = turned(c, x, {0, 1, 3, 2});
    }
    parts.push_back(x);
  }
  const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  std::string scores = c.add("Mul", {c.add("MatMul", {parts[0], parts[1]}), c.number(scale)});
  const size_t at = batch_first ? 1 : 0;
  if (c["is_causal"].as_bool())
    scores = without_later(c, scores, c.input_shape(0)[at], c.input_shape(1)[at]);
  const std::string shares = shares_of(c, scores);
  if (c["result"].as_int() == 1) {  // the weights of attention
    for (const char* operand : {"attended", "out_proj.weight", "out_proj.bias"})
      c.leave_out(operand);
    return c.result(c.mean(shares, {1}, false));
  }
  std::string y = turned(c, c.add("MatMul", {shares, parts[2]}), {0, 2, 1, 3});
  y = c.rounded(reshaped(c, y, {0, 0, width}), "attended", c.input_shape(0));
  y = c.add("MatMul", {y, c.parameter("out_proj.weight", {.order = {1, 0}})});
  if (c.has_parameter("out_proj.bias")) y = c.add("Add", {y, c.parameter("out_proj.bias")});
  c.result(batch_first ? y : turned(c, y, swapped));
}

// Pairs (i, i + d/2) turned by the angles of their positions.
void rotary_embedding(WriteContext& c) {
  const Shape& x = c.input_shape(0);
  const int64_t positions = x[x.size() - 2], half = x.back() / 2;
  const double base = c["base"].as_double();
  Tensor cosine = c.table({positions, half}), sine = c.table({positions, half});
  for (int64_t s = 0; s < positions; ++s)
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(s) *
                           std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
      cosine.mutable_data<float>()[s * half + i] = static_cast<float>(std::cos(angle));
      sine.mutable_data<float>()[s * half + i] = static_cast<float>(std::sin(angle));
    }
  const std::string name = fmt::format("rotary_{}x{}", positions, half);
  const std::string co = c.constant(name + ".cos", cosine), si = c.constant(name + ".sin", sine);
  const std::string input = c.input(0);
  const auto piece = [&](int64_t start) {
    return c.add("Slice", {input, c.integers("starts", {start}), c.integers("ends", {start + half}),
                           c.integers("axes", {-1})});
  };
  const std::string a = piece(0), b = piece(half);
  const auto times = [&](const std::string& p, const std::string& q) {
    return c.add("Mul", {p, q});
  };
  const std::string first = c.add("Sub", {times(a, co), times(b, si)});
  const std::string second = c.add("Add", {times(b, co), times(a, si)});
  c.result(c.add("Concat", {first, second}, {integer_attribute("axis", -1)}));
}

const Register<OnnxWriter> writers[] = {
    Register<OnnxWriter>({.name = "scaled_dot_product_attention", .write = attention}),
    Register<OnnxWriter>({.name = "multihead_attention", .write = multihead_attention}),
    Register<OnnxWriter>({.name = "rotary_embedding", .write = rotary_embedding}),
};

}  // namespace
}  // namespace mase::onnx::attention_writers
