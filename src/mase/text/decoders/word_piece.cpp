// SPDX-License-Identifier: Apache-2.0
// WordPiece: spaces between words, none before pieces that go on; `cleanup` takes those before
// punctuation and contractions away too.
#include "mase/text/decoders/word_piece.h"

#include "mase/text/part.h"

namespace mase {

std::string without_word_spaces(std::string text) {
  constexpr std::pair<const char*, const char*> rules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : rules) text = replace_all(std::move(text), from, to);
  return text;
}

}  // namespace mase

namespace mase::word_piece_decoder {
namespace {

Decoder make(const Value& config) {
  return [prefix = part_text(config["prefix"], "prefix"),
          cleanup = config["cleanup"].as_bool()](std::vector<std::string>& texts) {
    for (size_t i = 0; i < texts.size(); ++i) {
      if (i > 0)
        texts[i] = starts_with(texts[i], prefix) ? texts[i].substr(prefix.size()) : " " + texts[i];
      if (cleanup) texts[i] = without_word_spaces(std::move(texts[i]));
    }
  };
}

const Register<DecoderRecord> registered{
    {.name = "WordPiece",
     .summary = "spaces between words, none before pieces that go on",
     .schema = {{{.name = "prefix", .type = FieldType::any, .default_value = "##"},
                 {.name = "cleanup", .type = FieldType::boolean, .default_value = true}}},
     .make = make}};

}  // namespace
}  // namespace mase::word_piece_decoder
