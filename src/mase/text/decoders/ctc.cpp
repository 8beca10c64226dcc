// SPDX-License-Identifier: Apache-2.0
// CTC (Graves et al., 2006): a token that follows itself counts once, then padding goes.
#include <algorithm>

#include "mase/base/text.h"
#include "mase/text/decoders/word_piece.h"
#include "mase/text/part.h"

namespace mase::ctc_decoder {
namespace {

Decoder make(const Value& config) {
  return [padding = part_text(config["pad_token"], "pad_token"),
          delimiter = part_text(config["word_delimiter_token"], "word_delimiter_token"),
          cleanup = config["cleanup"].as_bool()](std::vector<std::string>& texts) {
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    for (std::string& text : texts) {
      if (!padding.empty()) text = replace_all(std::move(text), padding, "");
      if (!cleanup) continue;
      text = without_word_spaces(std::move(text));
      if (!delimiter.empty()) text = replace_all(std::move(text), delimiter, " ");
    }
    std::erase_if(texts, [](const std::string& text) { return text.empty(); });
  };
}

const Register<DecoderRecord> registered{
    {.name = "CTC",
     .summary = "tokens that follow themselves count once, padding goes",
     .schema = {{{.name = "pad_token", .type = FieldType::any, .default_value = "<pad>"},
                 {.name = "word_delimiter_token", .type = FieldType::any, .default_value = "|"},
                 {.name = "cleanup", .type = FieldType::boolean, .default_value = true}}},
     .make = make}};

}  // namespace
}  // namespace mase::ctc_decoder
