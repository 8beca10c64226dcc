// SPDX-License-Identifier: Apache-2.0
// Replace: a text in the place of each match of a pattern.
#include "mase/text/part.h"

namespace mase::replace_decoder {
namespace {

const Register<DecoderRecord> registered{
    {.name = "Replace",
     .summary = "a text in the place of each match of a pattern",
     .schema = {{{.name = "pattern", .type = FieldType::table, .required = true},
                 {.name = "content", .type = FieldType::any, .required = true}}},
     .make = [](const Value& config) -> Decoder {
       return [pattern = read_part_pattern(config["pattern"]),
               content = part_text(config["content"], "content")](std::vector<std::string>& texts) {
         for (std::string& text : texts) {
           std::string replaced;
           pattern.each(text, [&](size_t begin, size_t end, bool matched) {
             replaced += matched ? content : text.substr(begin, end - begin);
           });
           text = std::move(replaced);
         }
       };
     }}};

}  // namespace
}  // namespace mase::replace_decoder
