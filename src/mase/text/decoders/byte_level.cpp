// SPDX-License-Identifier: Apache-2.0
// ByteLevel: the bytes that characters stand for. What is no UTF-8 becomes U+FFFD.
#include "mase/text/part.h"

namespace mase::byte_level_decoder {
namespace {

void decode(std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    const size_t before = bytes.size();
    for (size_t at = 0; at < text.size();) {
      const CodePoint next = code_point_at(text, at);
      at += next.bytes;
      const int byte = byte_of_character(next.code);
      if (byte < 0) {  // not of the byte-level alphabet: an added token, as it is
        bytes.resize(before);
        bytes += text;
        break;
      }
      bytes += static_cast<char>(byte);
    }
  }
  texts = {lossy_utf8(bytes)};
}

Schema schema() {
  Schema keys;
  for (const char* name : {"add_prefix_space", "trim_offsets", "use_regex"})
    keys.fields.push_back({.name = name,
                           .type = FieldType::boolean,
                           .default_value = true,
                           .help = "of the pre-tokeniser",
                           .idle = true});
  return keys;
}

const Register<DecoderRecord> registered{{.name = "ByteLevel",
                                          .summary = "the bytes that characters stand for",
                                          .schema = schema(),
                                          .make = [](const Value&) -> Decoder { return decode; }}};

}  // namespace
}  // namespace mase::byte_level_decoder
