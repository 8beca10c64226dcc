// SPDX-License-Identifier: Apache-2.0
// Strip: a character off the ends of each text, a number of times at most.
#include "mase/text/part.h"

namespace mase::strip_decoder {
namespace {

Decoder make(const Value& config) {
  std::string sign;
  append_utf8(sign, part_character(config["content"], "content"));
  return [sign, start = config["start"].as_int(),
          stop = config["stop"].as_int()](std::vector<std::string>& texts) {
    for (std::string& text : texts) {
      size_t begin = 0, end = text.size();
      for (int64_t i = 0; i < start && text.compare(begin, sign.size(), sign) == 0; ++i)
        begin += sign.size();
      for (int64_t i = 0; i < stop && end >= begin + sign.size() &&
                          text.compare(end - sign.size(), sign.size(), sign) == 0;
           ++i)
        end -= sign.size();
      text = text.substr(begin, end - begin);
    }
  };
}

const Register<DecoderRecord> registered{
    {.name = "Strip",
     .summary = "a character off the ends of each text",
     .schema = {{{.name = "content", .type = FieldType::any, .default_value = " "},
                 {.name = "start", .type = FieldType::integer, .default_value = 0, .minimum = 0},
                 {.name = "stop", .type = FieldType::integer, .default_value = 0, .minimum = 0}}},
     .make = make}};

}  // namespace
}  // namespace mase::strip_decoder
