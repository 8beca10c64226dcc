// SPDX-License-Identifier: Apache-2.0
// Pools over the positions of [N, C, positions...].
#include <algorithm>
#include <cmath>

#include "mase/io/onnx/read/windows.h"

namespace mase::onnx::pooling_operators {
namespace {

size_t position_dims(const NodeContext& context) {
  const size_t rank = context.input(0).rank();
  if (rank != 3 && rank != 4)
    context.fail(fmt::format("an input of rank {}: only 3 and 4 are read", rank));
  return rank - 2;
}

// How many values of x, or of x and its padding, stand in each window: [1, 1, windows...].
Tensor counts(const Shape& sizes, const Shape& kernel, const WindowAttributes& windows,
              const Shape& results, bool with_padding) {
  Shape shape = {1, 1};
  shape.insert(shape.end(), results.begin(), results.end());
  Tensor out(shape);
  const size_t dims = sizes.size();
  for (int64_t at = 0; at < out.numel(); ++at) {
    int64_t rest = at, product = 1;
    for (size_t d = dims; d-- > 0;) {
      const int64_t place = rest % results[d];
      rest /= results[d];
      int64_t inside = 0;
      for (int64_t k = 0; k < kernel[d]; ++k) {
        const int64_t from =
            place * windows.strides[d] - windows.before[d] + k * windows.dilations[d];
        const int64_t low = with_padding ? -windows.before[d] : 0;
        const int64_t high = sizes[d] + (with_padding ? windows.after[d] : 0);
        inside += from >= low && from < high;
      }
      product *= inside;
    }
    out.mutable_data<float>()[at] = static_cast<float>(product);
  }
  return out;
}

int64_t window_count(int64_t size, int64_t reach, int64_t stride, int64_t before, int64_t after,
                     bool ceil) {
  const int64_t room = size + before + after - reach;
  if (room < 0) return 0;
  int64_t count = room / stride + 1;
  // A last window that is cut off counts, unless it begins behind everything.
  if (ceil && room % stride != 0 && count * stride < size + before) ++count;
  return count;
}

// Windows that are cut, padded on one side or have gaps: their sums, divided by what stands in
// them.
Operand mean_by_counts(NodeContext& context, const Operand& x, const Shape& kernel,
                       WindowAttributes windows, bool counts_padding, bool ceil) {
  const size_t dims = kernel.size();
  const Shape sizes(x.shape.begin() + 2, x.shape.end());
  Shape results;
  WindowAttributes further = windows;
  int64_t values = 1;
  for (size_t i = 0; i < dims; ++i) {
    const int64_t reach = (kernel[i] - 1) * windows.dilations[i] + 1;
    results.push_back(window_count(sizes[i], reach, windows.strides[i], windows.before[i],
                                   windows.after[i], ceil));
    if (results[i] < 1) context.fail("its windows are larger than the input");
    const int64_t wanted = (results[i] - 1) * windows.strides[i] + reach;
    further.after[i] = std::max<int64_t>(0, wanted - sizes[i] - windows.before[i]);
    values *= kernel[i];
  }
  constexpr int64_t most = int64_t{1} << 22;
  if (element_count(results) > most) context.fail("it has too many windows");
  Operand sums = padded(context, x, further, 0);
  const int64_t channels = x.shape[1];
  Shape weight_shape = {channels, 1};
  weight_shape.insert(weight_shape.end(), kernel.begin(), kernel.end());
  if (values > most || channels > most / values) context.fail("its windows are too large");
  Tensor ones(weight_shape);
  std::fill_n(ones.mutable_data<float>(), ones.numel(), 1.0f);
  sums = context.layer(fmt::format("conv{}d", dims),
                       Dict{{"in_channels", channels},
                            {"out_channels", channels},
                            {"kernel_size", Value::of(kernel)},
                            {"stride", Value::of(windows.strides)},
                            {"dilation", Value::of(windows.dilations)},
                            {"groups", channels},
                            {"bias", false}},
                       {{"weight", context.constant_operand(ones)}}, sums);
  return context.call(
      "div",
      {sums, context.constant_operand(counts(sizes, kernel, windows, results, counts_padding))});
}

void pool(NodeContext& context, bool maximum) {
  const size_t dims = position_dims(context);
  Operand x = context.input(0);
  const Shape kernel = context.integer_list("kernel_shape");
  if (kernel.size() != dims) context.fail("kernel_shape has not one size for each dimension");
  const bool ceil = context.integer("ceil_mode", 0) != 0;
  WindowAttributes windows = read_windows(context, kernel, false);
  const bool counts_padding = context.integer("count_include_pad", 0) != 0;
  if (maximum && context.output_is_used(1)) context.fail("the places of the maxima are asked for");
  bool even = windows.before == windows.after;
  for (size_t i = 0; i < dims; ++i) {  // PyTorch pads by half a window at most
    even = even && windows.before[i] <= kernel[i] / 2;
    // and counts differently where the last window is cut
    const int64_t reach = (kernel[i] - 1) * windows.dilations[i] + 1;
    if (ceil && !maximum &&
        (x.shape[i + 2] + windows.before[i] + windows.after[i] - reach) % windows.strides[i] != 0)
      even = false;
  }
  if (!maximum && (!even || windows.dilations != std::vector<int64_t>(dims, 1)))
    return context.result(0, mean_by_counts(context, x, kernel, windows, counts_padding, ceil));
  if (!even) {
    x = padded(context, x, windows, -INFINITY);
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
