// SPDX-License-Identifier: Apache-2.0
#include "mase/text/added_tokens.h"

#include <algorithm>

namespace mase {
namespace {

constexpr size_t longest_added_token = 1024;

size_t before(std::string_view text, size_t at) {
  --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

const Schema& added_token_schema() {
  static const Schema schema{
      {{.name = "id", .type = FieldType::integer, .required = true, .minimum = 0},
       {.name = "content", .type = FieldType::any, .required = true},
       {.name = "single_word", .type = FieldType::boolean, .default_value = false},
       {.name = "lstrip", .type = FieldType::boolean, .default_value = false},
       {.name = "rstrip", .type = FieldType::boolean, .default_value = false},
       {.name = "normalized", .type = FieldType::boolean, .default_value = true},
       {.name = "special", .type = FieldType::boolean, .default_value = false}}};
  return schema;
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const Value& list, TokenVocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  for (const Value& entry : list.as_list("added_tokens")) {
    const Value keys = validate(entry, added_token_schema(), "added_tokens");
    AddedToken token{.id = 0,
                     .content = part_text(keys["content"], "content"),
                     .single_word = keys["single_word"].as_bool(),
                     .left_strip = keys["lstrip"].as_bool(),
                     .right_strip = keys["rstrip"].as_bool(),
                     .normalized = keys["normalized"].as_bool(),
                     .special = keys["special"].as_bool()};
    if (token.content.empty() || token.content.size() > longest_added_token)
      throw Error(entry.position(), "added_tokens", "a token is empty or longer than 1024 bytes");
    const auto known = vocabulary.id(token.content);
    if (!known)
      vocabulary.add(token.content, keys["id"]);
    else if (*known != keys["id"].as_int())
      throw Error(entry.position(), "added_tokens",
                  fmt::format("'{}' has the id {}, and {} in the vocabulary",
                              printable(token.content.substr(0, 80)), keys["id"].as_int(), *known));
    token.id = static_cast<int32_t>(keys["id"].as_int());
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void TokenFinder::add(const AddedToken& token, std::string_view searched) {
  if (searched.empty() || texts_.find(searched) != StringIndex::none) return;
  texts_.add(searched);
  tokens_.push_back(token);
  std::vector<size_t>& lengths = lengths_[static_cast<unsigned char>(searched[0])];
  const auto place =
      std::lower_bound(lengths.begin(), lengths.end(), searched.size(), std::greater<>());
  if (place == lengths.end() || *place != searched.size()) lengths.insert(place, searched.size());
}

bool TokenFinder::stands_alone(std::string_view text, size_t begin, size_t end,
                               const AddedToken& token) {
  if (!token.single_word) return true;
  const bool left = begin == 0 || !is_word_character(code_point_at(text, before(text, begin)).code);
  return left && (end == text.size() || !is_word_character(code_point_at(text, end).code));
}

void TokenFinder::strip(std::string_view text, const AddedToken& token, size_t least, size_t& begin,
                        size_t& end) {
  while (token.left_strip && begin > least) {
    const size_t last = before(text, begin);
    if (last < least || !is_white_space(code_point_at(text, last).code)) break;
    begin = last;
  }
  while (token.right_strip && end < text.size()) {
    const CodePoint next = code_point_at(text, end);
    if (!is_white_space(next.code)) break;
    end += next.bytes;
  }
}

}  // namespace mase
