// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/heads.h"

namespace mase::onnx {
namespace {

Operand heads_and_positions_swapped(NodeContext& context, const Operand& x) {
  return context.call("permute", {x}, Dict{{"dims", Value::of(Shape{0, 2, 1, 3})}});
}

}  // namespace

Operand split_heads(NodeContext& context, const Operand& x, int64_t heads) {
  if (heads < 1 || x.rank() != 3 || x.shape[2] % heads != 0)
    context.fail(fmt::format("{} heads of {}", heads, shape_text(x.shape)));
  return heads_and_positions_swapped(
      context, context.reshape(x, {x.shape[0], x.shape[1], heads, x.shape[2] / heads}));
}

Operand joined_heads(NodeContext& context, const Operand& x) {
  const Operand together = heads_and_positions_swapped(context, x);
  return context.reshape(together, {x.shape[0], x.shape[2], x.shape[1] * x.shape[3]});
}

}  // namespace mase::onnx
