// SPDX-License-Identifier: Apache-2.0
// CharDelimiterSplit: cuts at a character, which goes.
#include "mase/text/part.h"

namespace mase::char_delimiter_splitter {
namespace {

const Register<SplitterRecord> registered{
    {.name = "CharDelimiterSplit",
     .summary = "cuts at a character",
     .schema = {{{.name = "delimiter", .type = FieldType::any, .required = true}}},
     .make = [](const Value& config) -> Splitter {
       std::string character;
       append_utf8(character, part_character(config["delimiter"], "delimiter"));
       return [pattern = TextPattern::literal(character, config.position().str())](Pieces& pieces) {
         pieces.split(pattern, SplitBehavior::removed);
       };
     }}};

}  // namespace
}  // namespace mase::char_delimiter_splitter
