// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/windows.h"

#include <algorithm>

namespace mase::onnx {

WindowAttributes read_windows(const NodeContext& context, const Shape& kernel, bool transposed) {
  const size_t dims = kernel.size();
  const auto list = [&](const char* name, int64_t fallback, int64_t least) {
    std::vector<int64_t> numbers = context.integer_list(name, std::vector<int64_t>(dims, fallback));
    if (numbers.size() != dims)
      context.fail(fmt::format("{} has {} numbers for {} dimensions", name, numbers.size(), dims));
    constexpr int64_t most = 1 << 20;
    for (const int64_t number : numbers)
      if (number < least || number > most) context.fail(fmt::format("{} holds {}", name, number));
    return numbers;
  };
  for (const int64_t size : kernel)
    if (size < 1) context.fail(fmt::format("a window of size {}", size));
  WindowAttributes windows;
  windows.strides = list("strides", 1, 1);
  windows.dilations = list("dilations", 1, 1);
  const std::string automatic = context.text("auto_pad", "NOTSET");
  const Sizes& shape = context.input(0).shape;
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (size_t i = 0; i < dims; ++i) {
      const int64_t size = shape[i + 2], stride = windows.strides[i];
      const int64_t reach = (kernel[i] - 1) * windows.dilations[i] + 1;
      const int64_t total =
          transposed
              ? std::max<int64_t>(0, reach - stride)
              : std::max<int64_t>(0, ((size + stride - 1) / stride - 1) * stride + reach - size);
      const int64_t less = total / 2, more = total - less;
      windows.before.push_back(automatic == "SAME_UPPER" ? less : more);
      windows.after.push_back(automatic == "SAME_UPPER" ? more : less);
    }
    return windows;
  }
  if (automatic != "NOTSET" && automatic != "VALID" && !automatic.empty())
    context.fail(fmt::format("auto_pad '{}'", automatic));
  std::vector<int64_t> pads = context.integer_list("pads", std::vector<int64_t>(2 * dims, 0));
  if (automatic == "VALID") pads.assign(2 * dims, 0);
  if (pads.size() != 2 * dims)
    context.fail(fmt::format("pads has {} numbers for {} dimensions", pads.size(), dims));
  constexpr int64_t widest = 1 << 20;
  for (const int64_t pad : pads)
    if (pad < 0 || pad > widest) context.fail(fmt::format("a padding of {}", pad));
  windows.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(dims));
  windows.after.assign(pads.begin() + static_cast<int64_t>(dims), pads.end());
  return windows;
}

Operand padded(NodeContext& context, const Operand& x, const WindowAttributes& windows,
               double value) {
  List pads;  // the last dimension first
  for (size_t i = windows.before.size(); i-- > 0;) {
    pads.emplace_back(windows.before[i]);
    pads.emplace_back(windows.after[i]);
  }
  return context.call("pad", {x}, Dict{{"pad", pads}, {"value", value}});
}

}  // namespace mase::onnx
