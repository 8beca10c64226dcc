// SPDX-License-Identifier: Apache-2.0
#include "mase/report/text/utf8.h"

#include <cstdint>

namespace mase {

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t size = first < 0x80             ? 1
                      : (first & 0xE0) == 0xC0 ? 2
                      : (first & 0xF0) == 0xE0 ? 3
                      : (first & 0xF8) == 0xF0 ? 4
                                               : 0;
  if (size <= 1) return size;
  if (text.size() < size) return 0;
  uint32_t code = first & (0x7F >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < smallest[size] || code > 0x10FFFF || surrogate ? 0 : size;
}

std::string valid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t size = utf8_length(text);
    if (size == 0)
      result += "\xEF\xBF\xBD";
    else
      result += text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

}  // namespace mase
