// SPDX-License-Identifier: Apache-2.0
// Einsum of one or two operands: dimensions that both have and the result keeps are a batch, those
// the result does not keep are summed over, and the rest is a matrix product.
#include <algorithm>
#include <map>

#include "mase/io/onnx/read/products.h"

namespace mase::onnx::einsum_operators {
namespace {

struct Equation {
  std::vector<std::string> inputs;  // a letter for each dimension
  std::string output;
};

// Letters that nobody writes stand for the dimensions of an ellipsis.
std::string with_ellipsis(const NodeContext& context, const std::string& term, size_t rank) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  const size_t named = term.size() - 3;
  if (named > rank || rank - named > 20) context.fail("its ellipsis stands for no dimensions");
  std::string letters;
  for (size_t i = 0; i < rank - named; ++i)
    letters.insert(letters.begin(), static_cast<char>(1 + i));
  return term.substr(0, at) + letters + term.substr(at + 3);
}

Equation parsed(const NodeContext& context) {
  std::string text;
  for (const char c : context.text("equation", ""))
    if (c != ' ') text += c;
  Equation equation;
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  for (size_t at = 0; at <= left.size();) {
    const size_t comma = std::min(left.find(',', at), left.size());
    equation.inputs.push_back(left.substr(at, comma - at));
    at = comma + 1;
  }
  if (equation.inputs.size() != context.input_count() || context.input_count() > 2)
    context.fail(
        fmt::format("{} operands for {} terms", context.input_count(), equation.inputs.size()));
  size_t longest = 0;
  std::map<char, int> counts;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    std::string& term = equation.inputs[i];
    const size_t named = term.size() - (term.find("...") == std::string::npos ? 0 : 3);
    const size_t rank = context.input(i).rank();
    if (named != term.size() && rank >= named) longest = std::max(longest, rank - named);
    term = with_ellipsis(context, term, rank);
    if (term.size() != rank)
      context.fail(fmt::format("{} letters for a shape of {}", term.size(), rank));
    for (const char c : term) {
      if (!(c < 32 || std::isalpha(static_cast<unsigned char>(c))))
        context.fail("its equation has other signs than letters");
      ++counts[c];
    }
  }
  if (arrow != std::string::npos) {
    equation.output = text.substr(arrow + 2);
    const size_t at = equation.output.find("...");
    if (at != std::string::npos)
      equation.output =
          with_ellipsis(context, equation.output, equation.output.size() - 3 + longest);
  } else {  // letters that stand once, in the order of the alphabet; dimensions of ellipses in
            // front
    for (const auto& [letter, count] : counts)
      if (count == 1 || letter < 32) equation.output += letter;
    std::reverse(equation.output.begin(),
                 std::find_if(equation.output.begin(), equation.output.end(),
                              [](char c) { return c >= 32; }));
  }
  for (size_t i = 0; i < equation.output.size(); ++i)
    if (!counts.count(equation.output[i]) ||
        equation.output.find(equation.output[i], i + 1) != std::string::npos)
      context.fail("its result has dimensions that no operand has, or one twice");
  return equation;
}

// A letter that stands twice takes the diagonal.
void take_diagonals(NodeContext& context, Operand& x, std::string& term) {
  for (size_t i = 0; i < term.size(); ++i) {
    const size_t again = term.find(term[i], i + 1);
    if (again == std::string::npos) continue;
    if (x.shape[i].has_batch() || x.shape[again].has_batch())
      context.needs_batch("a diagonal goes through the batch");
    const int64_t size = x.shape[i];
    constexpr int64_t most = 4096;
    if (x.shape[again] != size || size > most) context.fail("a diagonal of unequal dimensions");
    // Both dimensions to the end, as one, of which every (size + 1)th entry is taken.
    std::vector<int64_t> order;
    std::string rest;
    for (size_t k = 0; k < term.size(); ++k)
      if (k != i && k != again) {
        order.push_back(static_cast<int64_t>(k));
        rest += term[k];
      }
    order.push_back(static_cast<int64_t>(i));
    order.push_back(static_cast<int64_t>(again));
    x = context.call("permute", {x}, Dict{{"dims", Value::of(order)}});
    Sizes flat(x.shape.begin(), x.shape.end() - 2);
    flat.push_back(size * size);
    std::vector<int64_t> places;
    for (int64_t k = 0; k < size; ++k) places.push_back(k * (size + 1));
    x = context.call("index_select",
                     {context.reshape(x, flat), context.constant_operand(Tensor::of<int64_t>(
                                                    {size}, std::span<const int64_t>(places)))},
                     Dict{{"dim", static_cast<int64_t>(flat.size()) - 1}});
    term = rest + term[i];
    return take_diagonals(context, x, term);
  }
}

// Sums over the letters that `kept` does not have.
void sum_out(NodeContext& context, Operand& x, std::string& term, const std::string& kept) {
  List dims;
  std::string rest;
  for (size_t i = 0; i < term.size(); ++i)
    if (kept.find(term[i]) == std::string::npos) {
      dims.emplace_back(static_cast<int64_t>(i));
    } else {
      rest += term[i];
    }
  if (dims.empty()) return;
  x = context.call("sum", {x}, Dict{{"dim", Value(dims)}, {"keepdim", false}});
  term = rest;
}

Operand ordered(NodeContext& context, const Operand& x, const std::string& from,
                const std::string& to) {
  if (from == to) return x;
  std::vector<int64_t> order;
  for (const char c : to) order.push_back(static_cast<int64_t>(from.find(c)));
  return context.call("permute", {x}, Dict{{"dims", Value::of(order)}});
}

void einsum(NodeContext& context) {
  Equation equation = parsed(context);
  Operand a = context.input(0);
  std::string left = equation.inputs[0];
  take_diagonals(context, a, left);
  if (equation.inputs.size() == 1) {
    sum_out(context, a, left, equation.output);
    return context.result(0, ordered(context, a, left, equation.output));
  }
  Operand b = context.input(1);
  std::string right = equation.inputs[1];
  take_diagonals(context, b, right);
  sum_out(context, a, left, right + equation.output);
  sum_out(context, b, right, left + equation.output);
  std::string batch, rows, columns, inner;
  std::map<char, Size> sizes;
  for (size_t i = 0; i < left.size(); ++i) sizes[left[i]] = a.shape[i];
  for (size_t i = 0; i < right.size(); ++i) {
    const auto known = sizes.emplace(right[i], b.shape[i]).first;
    if (known->second == b.shape[i]) continue;
    if (known->second.has_batch() || b.shape[i].has_batch())
      context.needs_batch("its operands differ in the batch");
    context.fail("its operands differ in a dimension");
  }
  for (const char c : left) {
    const bool both = right.find(c) != std::string::npos,
               kept = equation.output.find(c) != std::string::npos;
    (both ? kept ? batch : inner : rows) += c;
  }
  for (const char c : right)
    if (left.find(c) == std::string::npos) columns += c;
  const auto shape_of = [&](const std::string& letters) {
    Sizes shape;
    for (const char c : letters) shape.push_back(sizes.at(c));
    return shape;
  };
  const auto matrix = [&](const Operand& x, const std::string& from, const std::string& first,
                          const std::string& second) {
    Sizes shape = shape_of(batch);
    shape.push_back(element_count(shape_of(first)));
    shape.push_back(element_count(shape_of(second)));
    return context.reshape(ordered(context, x, from, batch + first + second), shape);
  };
  const Operand result =
      context.call("matmul", {matrix(a, left, rows, inner), matrix(b, right, inner, columns)});
  const std::string all = batch + rows + columns;
  context.result(0, ordered(context, context.reshape(result, shape_of(all)), all, equation.output));
}

const Register<OnnxOperator> registered{
    {.name = "Einsum", .summary = "permute, sum and matmul", .convert = einsum}};

}  // namespace
}  // namespace mase::onnx::einsum_operators
