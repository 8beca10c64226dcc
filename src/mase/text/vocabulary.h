// SPDX-License-Identifier: Apache-2.0
// The tokens of a tokenizer and their ids.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mase/base/value.h"
#include "mase/text/string_index.h"

namespace mase {

class TokenVocabulary {
 public:
  static constexpr int64_t most_ids = int64_t{1} << 22;

  // A token or an id that is there already is an Error at the value's position.
  void add(const std::string& token, const Value& id);

  std::optional<int32_t> id(std::string_view token) const {
    const uint32_t number = tokens_.find(token);
    return number == StringIndex::none ? std::nullopt : std::optional<int32_t>(ids_[number]);
  }
  std::optional<std::string_view> token(int64_t id) const {
    if (id < 0 || id >= static_cast<int64_t>(numbers_.size()) ||
        numbers_[static_cast<size_t>(id)] == StringIndex::none)
      return std::nullopt;
    return tokens_[numbers_[static_cast<size_t>(id)]];
  }
  size_t count() const { return ids_.size(); }
  int64_t end() const { return static_cast<int64_t>(numbers_.size()); }  // behind the last id

 private:
  StringIndex tokens_;
  std::vector<int32_t> ids_;       // by the token's number
  std::vector<uint32_t> numbers_;  // by id
};

// {"token": id, ...}
TokenVocabulary read_token_vocabulary(const Value& table, const std::string& path);

}  // namespace mase
