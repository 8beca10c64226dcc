// SPDX-License-Identifier: Apache-2.0
// WordPiece: the longest token that a word begins with, then the longest that it goes on with. A
// word of which a part is no token is unknown as a whole.
#include <algorithm>

#include "mase/text/part.h"

namespace mase::word_piece_model {
namespace {

struct WordPieces {
  std::shared_ptr<const TokenVocabulary> vocabulary;
  std::string prefix;
  int32_t unknown;
  size_t longest_word;   // in characters
  size_t longest_token;  // in bytes, the prefix among them

  void tokenize(std::string_view word, std::vector<PieceToken>& tokens) const {
    const auto size = static_cast<uint32_t>(word.size());
    const size_t before = tokens.size();
    bool known = count_code_points(word) <= longest_word;
    std::string candidate;
    for (uint32_t begin = 0; known && begin < size;) {
      candidate = begin > 0 ? prefix : "";
      const size_t front = candidate.size();
      candidate += word.substr(begin, longest_token);
      std::optional<int32_t> id;
      while (candidate.size() > front && !(id = vocabulary->id(candidate))) candidate.pop_back();
      known = id.has_value();
      if (!known) break;
      const uint32_t end = begin + static_cast<uint32_t>(candidate.size() - front);
      tokens.push_back({*id, begin, end});
      begin = end;
    }
    if (known) return;
    tokens.resize(before);
    tokens.push_back({unknown, 0, size});
  }
};

TokenModel make(const Value& config, const Value& whole) {
  WordPieces pieces;
  pieces.vocabulary =
      std::make_shared<const TokenVocabulary>(read_token_vocabulary(whole["vocab"], "vocab"));
  pieces.prefix = part_text(config["continuing_subword_prefix"], "continuing_subword_prefix");
  const std::string unknown = part_text(config["unk_token"], "unk_token");
  const std::optional<int32_t> id = pieces.vocabulary->id(unknown);
  if (!id)
    throw Error(config.position(), "unk_token",
                fmt::format("'{}' is not in the vocabulary", printable(unknown.substr(0, 80))));
  pieces.unknown = *id;
  pieces.longest_word = static_cast<size_t>(config["max_input_chars_per_word"].as_int());
  pieces.longest_token = 0;
  for (int64_t i = 0; i < pieces.vocabulary->end(); ++i)
    if (const auto token = pieces.vocabulary->token(i))
      pieces.longest_token = std::max(pieces.longest_token, token->size());
  return {.vocabulary = pieces.vocabulary,
          .tokenize = [pieces](std::string_view piece,
                               std::vector<PieceToken>& tokens) { pieces.tokenize(piece, tokens); },
          .notes = Dict{{"unknown", unknown}}};
}

const Register<TokenModelRecord> registered{
    {.name = "WordPiece",
     .summary = "the longest token that a word begins with, then the longest that goes on",
     .schema =
         {{{.name = "unk_token", .type = FieldType::any, .default_value = "[UNK]"},
           {.name = "continuing_subword_prefix", .type = FieldType::any, .default_value = "##"},
           {.name = "max_input_chars_per_word",
            .type = FieldType::integer,
            .default_value = 100,
            .help = "longer words are unknown",
            .minimum = 0,
            .maximum = 10000}}},
     .make = make}};

}  // namespace
}  // namespace mase::word_piece_model
