// SPDX-License-Identifier: Apache-2.0
// A text on its way to tokens, which knows for each of its bytes which bytes of the original it
// stands for. As long as nothing was changed, it is the original's bytes and keeps no list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mase/text/unicode.h"

namespace mase {

// Bytes or characters from `begin` up to `end`.
struct TextSpan {
  uint32_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

class AlignedText {
 public:
  AlignedText() = default;
  // A part of the original that begins there.
  AlignedText(std::string_view text, uint32_t place) : text_(text), place_(place) {}

  std::string_view text() const { return text_; }
  uint32_t place() const { return place_; }
  // The original's bytes that the byte stands for.
  TextSpan original(size_t byte) const;
  // Those from the first byte of a range to its last.
  TextSpan original(TextSpan range) const;

  // Changes as CodeChange counts them; the first `removed` code points are gone.
  void transform(const std::vector<CodeChange>& changes, size_t removed = 0);
  // Bytes for bytes, one for one: nothing moves.
  template <class Change>
  void transform_bytes(Change change) {
    for (char& c : text_) c = change(c);
  }
  // Keeps the code points for which `keep` says so.
  template <class Keep>
  void filter(Keep keep);
  // Puts a text in front, which stands for what the first code point stands for.
  void prepend(std::string_view text);
  // Others in the place of ranges, in order; they stand for what a range's last byte stands for.
  void replace(const std::vector<TextSpan>& ranges, std::string_view with);
  void append(const AlignedText& other, TextSpan range);  // of the same original

 private:
  std::string text_;
  uint32_t place_ = 0;
  std::vector<TextSpan> from_;  // empty: as it was
  bool changed_ = false;
  void list_places();
};

template <class Keep>
void AlignedText::filter(Keep keep) {
  std::vector<CodeChange> changes;
  size_t removed_before = 0;
  int32_t removed = 0;
  for (size_t at = 0; at < text_.size();) {
    const CodePoint next = code_point_at(text_, at);
    at += next.bytes;
    if (!keep(next.code)) {
      ++removed;
      continue;
    }
    if (changes.empty())
      removed_before = static_cast<size_t>(removed);
    else
      changes.back().change = -removed;
    removed = 0;
    changes.push_back({next.code, 0});
  }
  if (!changes.empty()) changes.back().change = -removed;
  transform(changes, removed_before);
}

}  // namespace mase
