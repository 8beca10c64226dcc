// SPDX-License-Identifier: Apache-2.0
// ByteLevel: offsets without the spaces that tokens begin with.
#include <algorithm>

#include "mase/text/processors/marks.h"

namespace mase {
namespace {

bool is_space_sign(uint32_t code) {
  static const uint32_t space = character_of_byte(' ');
  return code == space || is_white_space(code);
}

}  // namespace

OffsetTrimmer space_trimmer(bool add_prefix_space) {
  return [add_prefix_space](Encoding& encoding, const std::vector<std::string_view>& tokens) {
    for (size_t i = 0; i < encoding.size(); ++i) {
      const std::string_view token = tokens[i];
      uint32_t leading = 0, trailing = 0;
      bool inside = false;
      for (size_t at = 0; at < token.size();) {
        const CodePoint next = code_point_at(token, at);
        at += next.bytes;
        const bool space = is_space_sign(next.code);
        leading += space && !inside;
        inside = inside || !space;
        trailing = space ? trailing + 1 : 0;
      }
      TextSpan& span = encoding.offsets[i];
      // A single one at the beginning was put there and stands for nothing.
      if (add_prefix_space && leading == 1 && (i == 0 || span.begin == 0)) leading = 0;
      span.begin = std::min(span.begin + leading, span.end);
      if (span.end >= trailing) span.end = std::max(span.end - trailing, span.begin);
    }
  };
}

}  // namespace mase

namespace mase::byte_level_processor {
namespace {

const Register<ProcessorRecord> registered{
    {.name = "ByteLevel",
     .summary = "offsets without the spaces that tokens begin with",
     .schema = {{{.name = "add_prefix_space", .type = FieldType::boolean, .default_value = true},
                 {.name = "trim_offsets", .type = FieldType::boolean, .default_value = true},
                 {.name = "use_regex",
                  .type = FieldType::boolean,
                  .default_value = true,
                  .help = "of the pre-tokeniser",
                  .idle = true}}},
     .make = [](const Value& config, const TokenVocabulary&) -> Processor {
       if (!config["trim_offsets"].as_bool()) return {};
       return {.trim = space_trimmer(config["add_prefix_space"].as_bool())};
     }}};

}  // namespace
}  // namespace mase::byte_level_processor
