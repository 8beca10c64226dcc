// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/products.h"

#include <algorithm>

#include "mase/io/onnx/read/tensor_moves.h"
#include "mase/io/onnx/read/windows.h"

namespace mase::onnx {

// A weight [in, out] as Linear keeps it, [out, in].
Operand turned_weight(NodeContext& context, const Operand& weight) {
  context.model().budget->charge(weight.constant->tensor.bytes(), context.place());
  Operand result = weight;
  result.constant->tensor = transposed(weight.constant->tensor, {1, 0});
  result.shape = result.constant->tensor.shape();
  if (result.format) result.format = permuted(*result.format, {1, 0}, 2);
  return result;
}

// `weight` [out, in].
Operand linear(NodeContext& context, const Operand& x, const Operand& weight, const Operand* bias) {
  std::vector<NodeContext::Parameter> parameters = {{"weight", weight}};
  if (bias) parameters.push_back({"bias", *bias});
  return context.layer("linear",
                       Dict{{"in_features", weight.shape[1].number()},
                            {"out_features", weight.shape[0].number()},
                            {"bias", bias != nullptr}},
                       parameters, x);
}

Operand product(NodeContext& context, const Operand& a, const Operand& b) {
  if (!a.is_constant() && b.is_constant() && b.rank() == 2 && a.rank() > 1 &&
      element_count(b.shape) > 0)
    return linear(context, a, turned_weight(context, b), nullptr);
  if (a.rank() == 0 || b.rank() == 0) context.fail("a single number is no matrix");
  // A list is a row on the left and a column on the right, which the result does not keep.
  const auto matrix = [&](const Operand& x, bool row) {
    if (x.rank() > 1) return x;
    return context.reshape(x, row ? Sizes{1, x.shape[0]} : Sizes{x.shape[0], 1});
  };
  Operand result = context.call("matmul", {matrix(a, true), matrix(b, false)});
  Sizes shape = result.shape;
  if (b.rank() == 1) shape.pop_back();
  if (a.rank() == 1) shape.erase(shape.end() - (b.rank() == 1 ? 1 : 2));
  return context.reshape(result, shape);
}

Operand convolution(NodeContext& context, const Operand& given, const Operand& weight,
                    const std::optional<Operand>& bias, bool transposed) {
  Operand x = given;
  if (x.rank() != 3 && x.rank() != 4)
    context.fail(fmt::format("an input of rank {}: only 3 and 4 are read", x.rank()));
  if (weight.rank() != x.rank())
    context.fail(
        fmt::format("a weight of rank {} for an input of rank {}", weight.rank(), x.rank()));
  const size_t dims = x.rank() - 2;
  const Shape kernel(weight.shape.begin() + 2, weight.shape.end());
  const auto declared = context.integer_list("kernel_shape", kernel);
  if (declared != kernel) context.fail("kernel_shape is not the weight's");
  const WindowAttributes windows = read_windows(context, kernel, transposed);
  const int64_t groups = context.integer("group", 1);
  if (groups < 1) context.fail("group is below 1");
  Dict attributes{{"stride", Value::of(windows.strides)},
                  {"dilation", Value::of(windows.dilations)},
                  {"groups", groups}};
  std::vector<int64_t> before(dims, 0), cut(dims, 0);  // off the result: in front, and in all
  if (transposed) {
    const std::vector<int64_t> further =
        context.integer_list("output_padding", std::vector<int64_t>(dims, 0));
    const std::vector<int64_t> wanted = context.integer_list("output_shape");
    const std::string automatic = context.text("auto_pad", "NOTSET");
    if (further.size() != dims || (!wanted.empty() && wanted.size() != dims))
      context.fail("output_padding or output_shape has not one number for each dimension");
    std::vector<int64_t> padding(dims, 0), longer(dims, 0);
    for (size_t i = 0; i < dims; ++i) {
      const int64_t full = windows.strides[i] * (x.shape[i + 2] - 1) +
                           (kernel[i] - 1) * windows.dilations[i] + 1 + further[i];
      int64_t front = windows.before[i], back = windows.after[i];
      if (!wanted.empty()) {
        const int64_t total = full - wanted[i];
        front = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
        if (automatic == "NOTSET") front = total / 2;
        back = total - front;
      }
      // Equal padding on both sides is the layer's; the rest is cut off, or added, at the end.
      padding[i] = std::max<int64_t>(0, std::min(front, back));
      before[i] = front - padding[i];
      longer[i] = further[i] + std::max<int64_t>(0, padding[i] - back);
      cut[i] = before[i] + std::max<int64_t>(0, back - padding[i]);
      if (before[i] < 0) context.fail("its output is larger in front than it can be");
    }
    attributes.set("output_padding", Value::of(longer));
    attributes.set("padding", Value::of(padding));
  } else if (windows.before == windows.after) {
    attributes.set("padding", Value::of(windows.before));
  } else {
    x = padded(context, x, windows, 0);
  }
  const auto cropped = [&](Operand result) {
    for (size_t i = 0; i < dims; ++i)
      if (cut[i] > 0)
        result = context.call("narrow", {result},
                              Dict{{"dim", static_cast<int64_t>(i + 2)},
                                   {"start", before[i]},
                                   {"length", result.shape[i + 2] - cut[i]}});
    return result;
  };
  const std::string op = fmt::format("conv{}{}d", transposed ? "_transpose" : "", dims);
  if (!weight.is_constant()) {
    std::vector<Operand> inputs = {x, weight};
    if (bias) inputs.push_back(*bias);
    return cropped(context.call(op, inputs, attributes));
  }
  const int64_t in = transposed ? weight.shape[0].number() : weight.shape[1].number() * groups;
  const int64_t out = transposed ? weight.shape[1].number() * groups : weight.shape[0].number();
  attributes.set("in_channels", in);
  attributes.set("out_channels", out);
  attributes.set("kernel_size", Value::of(kernel));
  attributes.set("bias", bias.has_value());
  std::vector<NodeContext::Parameter> parameters = {{"weight", weight}};
  if (bias) {
    if (!bias->is_constant()) context.fail("its bias is computed while the network runs");
    parameters.push_back({"bias", *bias});
  }
  return cropped(context.layer(op, attributes, parameters, x));
}

}  // namespace mase::onnx
