// SPDX-License-Identifier: Apache-2.0
// WordLevel: a token for each piece.
#include "mase/text/part.h"

namespace mase::word_level_model {
namespace {

TokenModel make(const Value& config, const Value& whole) {
  auto vocabulary =
      std::make_shared<const TokenVocabulary>(read_token_vocabulary(whole["vocab"], "vocab"));
  const std::string unknown = part_text(config["unk_token"], "unk_token");
  const std::optional<int32_t> fallback = vocabulary->id(unknown);
  return {
      .vocabulary = vocabulary,
      .tokenize =
          [vocabulary, fallback, unknown](std::string_view piece, std::vector<PieceToken>& tokens) {
            const std::optional<int32_t> id = vocabulary->id(piece);
            if (!id && !fallback)
              throw Error("tokenizer",
                          fmt::format("'{}' is not in the vocabulary, nor is '{}'",
                                      printable(piece.substr(0, 80)), printable(unknown)));
            tokens.push_back({id ? *id : *fallback, 0, static_cast<uint32_t>(piece.size())});
          },
      .notes = Dict{{"unknown", unknown}}};
}

const Register<TokenModelRecord> registered{
    {.name = "WordLevel",
     .summary = "a token for each piece",
     .schema = {{{.name = "unk_token", .type = FieldType::any, .default_value = "<unk>"}}},
     .make = make}};

}  // namespace
}  // namespace mase::word_level_model
