// SPDX-License-Identifier: Apache-2.0
#include "mase/text/vocabulary.h"

#include "mase/base/text.h"

namespace mase {

void TokenVocabulary::add(const std::string& token, const Value& id) {
  const std::string shown = printable(token.substr(0, 80));
  if (!id.is_int() || id.as_int() < 0 || id.as_int() >= most_ids)
    throw Error(id.position(), "",
                fmt::format("the token '{}' has no id from 0 to {}", shown, most_ids - 1));
  if (this->id(token))
    throw Error(id.position(), "", fmt::format("the token '{}' is there twice", shown));
  if (const auto other = this->token(id.as_int()))
    throw Error(id.position(), "",
                fmt::format("the tokens '{}' and '{}' have the id {}",
                            printable(other->substr(0, 80)), shown, id.as_int()));
  const auto place = static_cast<size_t>(id.as_int());
  if (place >= numbers_.size()) numbers_.resize(place + 1, StringIndex::none);
  numbers_[place] = tokens_.add(token);
  ids_.push_back(static_cast<int32_t>(id.as_int()));
}

TokenVocabulary read_token_vocabulary(const Value& table, const std::string& path) {
  if (!table.is_dict()) throw Error(table.position(), path, "is no table of tokens and ids");
  TokenVocabulary vocabulary;
  for (const auto& [token, id] : table.as_dict()) vocabulary.add(token, id);
  if (vocabulary.count() == 0) throw Error(table.position(), path, "has no tokens");
  return vocabulary;
}

}  // namespace mase
