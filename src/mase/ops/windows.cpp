// SPDX-License-Identifier: Apache-2.0
#include "mase/ops/windows.h"
#include "mase/base/fields.h"

#include <algorithm>

namespace mase {

std::vector<int64_t> per_dimension(const Value& value, size_t dims, const std::string& name) {
  if (value.is_int()) return std::vector<int64_t>(dims, value.as_int());
  const std::vector<int64_t> values = value.as_int_list(name);
  if (values.size() == 1) return std::vector<int64_t>(dims, values[0]);
  if (values.size() != dims)
    throw Error(value.position(), "",
                fmt::format("{} has {} numbers for {} dimensions", name, values.size(), dims));
  return values;
}

Field size_field(const std::string& name, Value default_value, const std::string& help,
                 double minimum, bool required) {
  Field field{.name = name,
              .default_value = std::move(default_value),
              .help = help + ", or one for each dimension",
              .required = required};
  field.check = [minimum](const Value& value) -> std::optional<std::string> {
    const List sizes = value.is_list() ? value.as_list() : List{value};
    if (sizes.empty()) return "expected a number";
    for (const Value& size : sizes)
      if (!size.is_int() || static_cast<double>(size.as_int()) < minimum ||
          size.as_int() > (int64_t{1} << 31))
        return fmt::format("expected whole numbers of at least {}", minimum);
    return {};
  };
  return field;
}

std::string tuple_text(const std::vector<int64_t>& values) {
  return fmt::format("({}{})", fmt::join(values, ", "), values.size() == 1 ? "," : "");
}

PaddingMode padding_mode_of(const std::string& name) {
  if (name == "reflect") return PaddingMode::reflect;
  if (name == "replicate") return PaddingMode::replicate;
  return name == "circular" ? PaddingMode::circular : PaddingMode::zeros;
}

Field padding_mode_field() {
  return text_field("padding_mode", "what stands in the padding", "zeros",
                    {"zeros", "reflect", "replicate", "circular"});
}

PlaneWindows::PlaneWindows(const Windows& windows, const Shape& x, const Shape& out,
                           PaddingMode padding_mode)
    : mode(padding_mode) {
  const size_t missing = 2 - windows.kernel.size();
  for (size_t i = 0; i < 2; ++i) {
    const bool given = i >= missing;
    const size_t j = i - missing;
    kernel[i] = given ? windows.kernel[j] : 1;
    stride[i] = given ? windows.stride[j] : 1;
    before[i] = given ? windows.padding_before[j] : 0;
    dilation[i] = given ? windows.dilation[j] : 1;
    size[i] = given ? x[j + 2] : 1;
    result[i] = given ? out[j + 2] : 1;
  }
}

int64_t padded_source(int64_t index, int64_t length, PaddingMode mode) {
  if (index >= 0 && index < length) return index;
  if (mode == PaddingMode::zeros || length == 0) return -1;
  if (mode == PaddingMode::replicate) return std::clamp<int64_t>(index, 0, length - 1);
  if (mode == PaddingMode::circular) return (index % length + length) % length;
  const int64_t mirrored = index < 0 ? -index : 2 * (length - 1) - index;
  return mirrored >= 0 && mirrored < length ? mirrored : -1;
}

}  // namespace mase
