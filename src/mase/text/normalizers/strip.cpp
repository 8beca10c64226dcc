// SPDX-License-Identifier: Apache-2.0
// Strip: white space at the ends out.
#include "mase/text/part.h"

namespace mase::strip_normalizer {
namespace {

Normalizer make(const Value& config) {
  const bool left = config["strip_left"].as_bool(), right = config["strip_right"].as_bool();
  return [=](AlignedText& text) {
    const std::string_view bytes = text.text();
    size_t begin = 0, end = bytes.size();
    for (; left && begin < end; begin += code_point_at(bytes, begin).bytes)
      if (!is_white_space(code_point_at(bytes, begin).code)) break;
    while (right && end > begin) {
      size_t last = end - 1;
      while ((static_cast<unsigned char>(bytes[last]) & 0xC0) == 0x80) --last;
      if (!is_white_space(code_point_at(bytes, last).code)) break;
      end = last;
    }
    if (begin == 0 && end == bytes.size()) return;
    AlignedText kept({}, text.place());
    kept.append(text, {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    text = std::move(kept);
  };
}

const Register<NormalizerRecord> registered{
    {.name = "Strip",
     .summary = "white space at the ends out",
     .schema = {{{.name = "strip_left", .type = FieldType::boolean, .default_value = true},
                 {.name = "strip_right", .type = FieldType::boolean, .default_value = true}}},
     .make = make}};

}  // namespace
}  // namespace mase::strip_normalizer
