// SPDX-License-Identifier: Apache-2.0
// Attention (operator set 23) as PyTorch's scaled_dot_product_attention.
#include "mase/io/onnx/operator.h"

namespace mase::onnx::attention_operators {
namespace {

// [batch, length, heads * width] as [batch, heads, length, width].
Operand split_heads(NodeContext& context, const Operand& x, int64_t heads) {
  if (heads < 1 || x.rank() != 3 || x.shape[2] % heads != 0)
    context.fail(fmt::format("{} heads of {}", heads, shape_text(x.shape)));
  const Operand apart = context.call(
      "reshape", {x}, Dict{{"shape", Value::of(Shape{-1, x.shape[1], heads, x.shape[2] / heads})}});
  return context.call("permute", {apart}, Dict{{"dims", Value::of(Shape{0, 2, 1, 3})}});
}

void attention(NodeContext& context) {
  Operand q = context.input(0), k = context.input(1), v = context.input(2);
  if (context.has(4) || context.has(5)) context.fail("keys and values of the past are given");
  if (context.number("softcap", 0) != 0) context.fail("scores with a soft cap");
  for (size_t i = 1; i < context.node().outputs.size(); ++i)
    if (!context.node().outputs[i].empty()) context.fail("more than the result is asked for");
  const bool joined = q.rank() == 3;
  if (joined) {
    q = split_heads(context, q, context.integer("q_num_heads", 0));
    k = split_heads(context, k, context.integer("kv_num_heads", 0));
    v = split_heads(context, v, context.integer("kv_num_heads", 0));
  }
  std::vector<Operand> inputs = {q, k, v};
  Dict attributes{{"is_causal", context.integer("is_causal", 0) != 0}};
  if (context.has_attribute("scale")) attributes.set("scale", context.number("scale", 1));
  if (context.has(3)) {
    Operand mask = context.input(3);
    if (mask.element == Element::boolean) {  // true: may be seen
      const Operand seen = context.constant_operand(Tensor::scalar(0));
      const Operand hidden = context.constant_operand(Tensor::scalar(-INFINITY));
      mask = context.call("where", {mask, seen, hidden});
    }
    inputs.push_back(mask);
  }
  Operand result = context.call("scaled_dot_product_attention", inputs, attributes);
  if (joined) {
    result = context.call("permute", {result}, Dict{{"dims", Value::of(Shape{0, 2, 1, 3})}});
    result = context.call(
        "reshape", {result},
        Dict{{"shape", Value::of(Shape{-1, result.shape[1], result.shape[2] * result.shape[3]})}});
  }
  context.result(0, result);
}

const Register<OnnxOperator> registered{
    {.name = "Attention", .summary = "scaled_dot_product_attention", .convert = attention}};

}  // namespace
}  // namespace mase::onnx::attention_operators
