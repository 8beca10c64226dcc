// SPDX-License-Identifier: Apache-2.0
// ByteLevel: words with the space before them, as GPT-2 cuts, and bytes as the characters that
// stand for them.
#include "mase/text/part.h"

namespace mase::byte_level_splitter {
namespace {

constexpr const char* gpt2_words =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

Splitter make(const Value& config) {
  const bool space = config["add_prefix_space"].as_bool();
  std::vector<TextPattern> words;
  if (config["use_regex"].as_bool()) words.emplace_back(gpt2_words, "ByteLevel");
  return [=](Pieces& pieces) {
    if (space)
      pieces.edit([](AlignedText& text, bool) {
        if (text.text().substr(0, 1) != " ") text.prepend(" ");
      });
    for (const TextPattern& pattern : words) pieces.split(pattern, SplitBehavior::isolated);
    pieces.bytes_wanted = true;
  };
}

const Register<SplitterRecord> registered{
    {.name = "ByteLevel",
     .summary = "words with the space before them, and bytes as characters",
     .schema = {{{.name = "add_prefix_space", .type = FieldType::boolean, .default_value = true},
                 {.name = "trim_offsets",
                  .type = FieldType::boolean,
                  .default_value = true,
                  .help = "for the post-processor of this name",
                  .idle = true},
                 {.name = "use_regex", .type = FieldType::boolean, .default_value = true}}},
     .make = make}};

}  // namespace
}  // namespace mase::byte_level_splitter
