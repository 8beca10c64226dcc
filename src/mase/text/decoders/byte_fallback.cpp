// SPDX-License-Identifier: Apache-2.0
// ByteFallback: runs of tokens such as <0x41> are the bytes of a text; bytes that are none become
// U+FFFD each.
#include <optional>

#include "mase/text/part.h"

namespace mase::byte_fallback_decoder {
namespace {

std::optional<char> byte_of(const std::string& text) {
  if (text.size() != 6 || !starts_with(text, "<0x") || text[5] != '>') return {};
  int value = 0;
  for (const char c : {text[3], text[4]}) {
    const char low = static_cast<char>(c | 0x20);
    const int digit = c >= '0' && c <= '9'       ? c - '0'
                      : low >= 'a' && low <= 'f' ? low - 'a' + 10
                                                 : -1;
    if (digit < 0) return {};
    value = value * 16 + digit;
  }
  return static_cast<char>(value);
}

void decode(std::vector<std::string>& texts) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (first_invalid_utf8(bytes) == bytes.size()) {
      if (!bytes.empty()) result.push_back(bytes);
    } else {
      result.insert(result.end(), bytes.size(), "\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& text : texts) {
    if (const auto byte = byte_of(text)) {
      bytes += *byte;
      continue;
    }
    flush();
    result.push_back(std::move(text));
  }
  flush();
  texts = std::move(result);
}

const Register<DecoderRecord> registered{{.name = "ByteFallback",
                                          .summary = "tokens such as <0x41> as bytes",
                                          .make = [](const Value&) -> Decoder { return decode; }}};

}  // namespace
}  // namespace mase::byte_fallback_decoder
