// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizer files, matched in time that grows with the text: an automaton
// with one state at a time, made whole when the file is read. RE2, which base/pattern.h uses for
// expressions that users write, cannot look ahead and means ASCII by \s, \w and \d, where these
// files mean Unicode.
//
// Of the matches at a place the one is taken that a matcher which tries one way after another would
// find first. An automaton that reads what comes next before it moves can also look ahead at it: a
// state's list of ways is followed up to the next code point only when that is known.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mase/text/aligned_text.h"

namespace mase {

class TextPattern {
 public:
  // What is wrong with an expression, or takes too many states, is an Error at `place`.
  TextPattern(const std::string& expression, const std::string& place);
  static TextPattern literal(std::string_view text, const std::string& place);

  // Calls found(begin, end, matched) for each match and each stretch between matches, in order.
  template <class Found>
  void each(std::string_view text, Found found) const {
    size_t from = 0, at = 0, steps = 0;
    while (at < text.size()) {
      const size_t end = match(text, at, steps);
      if (end == at) {
        at += code_point_at(text, at).bytes;
        continue;
      }
      if (from < at) found(from, at, false);
      found(at, end, true);
      from = at = end;
    }
    if (from < text.size()) found(from, text.size(), false);
  }
  std::vector<TextSpan> matches(std::string_view text) const;

 private:
  // The end of the match that begins here; `at` if there is none.
  size_t match(std::string_view text, size_t at, size_t& steps) const {
    size_t end = at, i = at;
    uint32_t state = starts_[at == 0 || text[at - 1] == '\n' ? 1 : 0];
    for (;;) {
      uint32_t kind = end_class_, bytes = 1;
      if (i < text.size()) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte < 0x80) {
          kind = ascii_[byte];
        } else {
          const CodePoint next = code_point_at(text, i);
          kind = class_of(next.code);
          bytes = next.bytes;
        }
      }
      const uint32_t move = moves_[state * class_count_ + kind];
      if (move & 1) end = i;
      state = move >> 1;
      if (state == 0) break;
      i += bytes;
    }
    // What was read beyond the match is read again. Patterns in use read a character or two.
    steps += i - end;
    if (steps > 64 * text.size() + (size_t{1} << 20)) too_slow();
    return end;
  }
  uint32_t class_of(uint32_t code) const;
  [[noreturn]] void too_slow() const;

  std::string expression_, place_;
  std::array<uint8_t, 128> ascii_{};
  std::vector<uint32_t> borders_;  // of stretches of code points
  std::vector<uint8_t> classes_;   // by stretch and category
  uint32_t class_count_ = 0, end_class_ = 0;
  std::array<uint32_t, 2> starts_{};  // elsewhere, and where a line begins
  std::vector<uint32_t> moves_;       // by state and class: the next state, and whether one ended
};

}  // namespace mase
