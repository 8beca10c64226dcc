// SPDX-License-Identifier: Apache-2.0
// Tokens that a text is searched for before anything else is done to it: special ones, and those
// that were added to a vocabulary.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mase/text/part.h"

namespace mase {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;                      // only where no letters touch it
  bool left_strip = false, right_strip = false;  // takes the white space beside it
  bool normalized = false;                       // looked for in the normalised text
  bool special = false;                          // left out of decoded texts
};

// A list of the file. A token that the vocabulary has must have its id there; the others are added.
std::vector<AddedToken> read_added_tokens(const Value& list, TokenVocabulary& vocabulary);

// Finds the leftmost token, and of several there the longest.
class TokenFinder {
 public:
  void add(const AddedToken& token, std::string_view searched);
  bool empty() const { return tokens_.empty(); }

  // Calls found(begin, end, id) for tokens and for what is between them, whose id is -1.
  template <class Found>
  void each(std::string_view text, Found found) const {
    size_t from = 0;
    if (!empty())
      for (size_t at = 0; at < text.size();) {
        const AddedToken* token = nullptr;
        size_t end = match(text, at, token);
        if (!token) {
          ++at;
          continue;
        }
        size_t begin = at;
        at = end;
        if (!stands_alone(text, begin, end, *token)) continue;
        strip(text, *token, from, begin, end);
        if (from < begin) found(from, begin, -1);
        found(begin, end, token->id);
        from = end;
        at = std::max(at, end);
      }
    if (from < text.size()) found(from, text.size(), -1);
  }

 private:
  size_t match(std::string_view text, size_t at, const AddedToken*& token) const {
    const auto first = static_cast<unsigned char>(text[at]);
    for (const size_t length : lengths_[first]) {
      if (length > text.size() - at) continue;
      const uint32_t number = texts_.find(text.substr(at, length));
      if (number == StringIndex::none) continue;
      token = &tokens_[number];
      return at + length;
    }
    return at;
  }
  static bool stands_alone(std::string_view text, size_t begin, size_t end,
                           const AddedToken& token);
  static void strip(std::string_view text, const AddedToken& token, size_t least, size_t& begin,
                    size_t& end);

  StringIndex texts_;
  std::vector<AddedToken> tokens_;                     // by the text's number
  std::array<std::vector<size_t>, 256> lengths_ = {};  // by first byte, longest first
};

}  // namespace mase
