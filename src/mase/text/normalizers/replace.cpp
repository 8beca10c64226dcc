// SPDX-License-Identifier: Apache-2.0
// Replace: a text in the place of each match of a pattern.
#include "mase/text/part.h"

namespace mase::replace_normalizer {
namespace {

const Register<NormalizerRecord> registered{
    {.name = "Replace",
     .summary = "a text in the place of each match of a pattern",
     .schema = {{{.name = "pattern", .type = FieldType::table, .required = true},
                 {.name = "content", .type = FieldType::any, .required = true}}},
     .make = [](const Value& config) -> Normalizer {
       return [pattern = read_part_pattern(config["pattern"]),
               content = part_text(config["content"], "content")](AlignedText& text) {
         text.replace(pattern.matches(text.text()), content);
       };
     }}};

}  // namespace
}  // namespace mase::replace_normalizer
