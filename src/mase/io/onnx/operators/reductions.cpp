// SPDX-License-Identifier: Apache-2.0
// Sums and means over dimensions.
#include <algorithm>

#include "mase/io/onnx/operator.h"

namespace mase::onnx::reduction_operators {
namespace {

Operand reduced(NodeContext& context, const char* op, const Operand& x) {
  std::vector<int64_t> axes = context.integer_list("axes");
  if (context.has(1)) axes = context.integers(1, "the axes");
  const bool keep = context.integer("keepdims", 1) != 0;
  if (axes.empty() && context.integer("noop_with_empty_axes", 0) != 0) return x;
  const auto rank = static_cast<int64_t>(x.rank());
  if (axes.empty())
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      context.fail(fmt::format("axis {} of {} dimensions", axis, rank));
    if (axis < 0) axis += rank;
    if (x.shape[static_cast<size_t>(axis)] % context.batch() == 0 && !x.is_constant())
      context.fail("it joins the entries of the batch");
  }
  std::sort(axes.begin(), axes.end());
  if (axes.empty()) return x;
  Operand result = context.call(op, {x}, Dict{{"dim", Value::of(axes)}, {"keepdim", keep}});
  return result;
}

OnnxOperator reduction(const char* name, const char* before, const char* op, const char* after,
                       const char* summary) {
  return {.name = name, .summary = summary, .convert = [=](NodeContext& context) {
            Operand x = context.input(0);
            if (*before) x = context.call(before, {x});
            x = reduced(context, op, x);
            if (*after) x = context.call(after, {x});
            context.result(0, x);
          }};
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>(reduction("ReduceMean", "", "mean", "", "mean")),
    Register<OnnxOperator>(reduction("ReduceSum", "", "sum", "", "sum")),
    Register<OnnxOperator>(reduction("ReduceSumSquare", "square", "sum", "", "sum of squares")),
    Register<OnnxOperator>(reduction("ReduceL1", "abs", "sum", "", "sum of magnitudes")),
    Register<OnnxOperator>(reduction("ReduceL2", "square", "sum", "sqrt", "root of the squares")),
    Register<OnnxOperator>(reduction("ReduceLogSum", "", "sum", "log", "log of the sum")),
    Register<OnnxOperator>(
        reduction("ReduceLogSumExp", "exp", "sum", "log", "log of the sum of exp")),
};

}  // namespace
}  // namespace mase::onnx::reduction_operators
