// SPDX-License-Identifier: Apache-2.0
// Pools over the positions of [N, C, positions...].
#include <cmath>

#include "mase/io/onnx/windows.h"

namespace mase::onnx::pooling_operators {
namespace {

size_t position_dims(const NodeContext& context) {
  const size_t rank = context.input(0).rank();
  if (rank != 3 && rank != 4)
    context.fail(fmt::format("an input of rank {}: only 3 and 4 are read", rank));
  return rank - 2;
}

void pool(NodeContext& context, bool maximum) {
  const size_t dims = position_dims(context);
  Operand x = context.input(0);
  const Shape kernel = context.integer_list("kernel_shape");
  if (kernel.size() != dims) context.fail("kernel_shape has not one size for each dimension");
  WindowAttributes windows = read_windows(context, kernel, false);
  const bool counts_padding = context.integer("count_include_pad", 0) != 0;
  const bool ceil = context.integer("ceil_mode", 0) != 0;
  if (!maximum && windows.dilations != std::vector<int64_t>(dims, 1))
    context.fail("a mean over windows with gaps");
  if (maximum && context.node().outputs.size() > 1 && !context.node().outputs[1].empty() &&
      context.model().uses.count(context.node().outputs[1]))
    context.fail("the places of the maxima are asked for");
  bool too_wide = false;  // PyTorch pads by half a window at most
  for (size_t i = 0; i < dims; ++i) too_wide = too_wide || windows.before[i] > kernel[i] / 2;
  if (windows.before != windows.after || too_wide) {
    if (!maximum && !counts_padding)
      context.fail("a mean over windows that are padded on one side only");
    x = padded(context, x, windows, maximum ? -INFINITY : 0);
    windows.before.assign(dims, 0);
  }
  Dict attributes{{"kernel_size", Value::of(kernel)},
                  {"stride", Value::of(windows.strides)},
                  {"padding", Value::of(windows.before)},
                  {"ceil_mode", ceil}};
  if (maximum)
    attributes.set("dilation", Value::of(windows.dilations));
  else
    attributes.set("count_include_pad", counts_padding);
  context.result(
      0, context.call(fmt::format("{}_pool{}d", maximum ? "max" : "avg", dims), {x}, attributes));
}

void global_pool(NodeContext& context, const char* kind) {
  const size_t dims = position_dims(context);
  context.result(0, context.call(fmt::format("adaptive_{}_pool{}d", kind, dims), {context.input(0)},
                                 Dict{{"output_size", 1}}));
}

const Register<OnnxOperator> max_pool_operator{
    {.name = "MaxPool", .summary = "MaxPool1d or MaxPool2d", .convert = [](NodeContext& context) {
       pool(context, true);
     }}};
const Register<OnnxOperator> average_pool_operator{
    {.name = "AveragePool",
     .summary = "AvgPool1d or AvgPool2d",
     .convert = [](NodeContext& context) { pool(context, false); }}};
const Register<OnnxOperator> global_average_pool_operator{
    {.name = "GlobalAveragePool",
     .summary = "AdaptiveAvgPool1d or AdaptiveAvgPool2d",
     .convert = [](NodeContext& context) { global_pool(context, "avg"); }}};
const Register<OnnxOperator> global_max_pool_operator{
    {.name = "GlobalMaxPool",
     .summary = "AdaptiveMaxPool1d or AdaptiveMaxPool2d",
     .convert = [](NodeContext& context) { global_pool(context, "max"); }}};

}  // namespace
}  // namespace mase::onnx::pooling_operators
