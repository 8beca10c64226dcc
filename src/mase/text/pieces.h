// SPDX-License-Identifier: Apache-2.0
// A text and the pieces that it was cut into, on the way to tokens.
#pragma once

#include <string>
#include <vector>

#include "mase/text/aligned_text.h"
#include "mase/text/text_pattern.h"

namespace mase {

// What becomes of the matches of a pattern.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct Pieces {
  AlignedText text;
  std::vector<TextSpan> pieces;  // of the text, in order
  // The model is to see bytes as the characters that stand for them. Kept as a word until the model
  // does not know a piece, since most pieces were seen before.
  bool bytes_wanted = false;

  void split(const TextPattern& pattern, SplitBehavior behavior, bool invert = false);
  // Each piece by itself, as a text that may be changed; `begins` says that the original begins
  // with it.
  template <class Edit>
  void edit(Edit edit) {
    Pieces result{.text = AlignedText({}, text.place()), .pieces = {}};
    for (const TextSpan& piece : pieces) {
      AlignedText part({}, text.place());
      part.append(text, piece);
      edit(part, text.original(piece.begin).begin == 0);
      const auto size = static_cast<uint32_t>(part.text().size());
      const auto begin = static_cast<uint32_t>(result.text.text().size());
      if (size == 0) continue;
      result.text.append(part, {0, size});
      result.pieces.push_back({begin, begin + size});
    }
    result.bytes_wanted = bytes_wanted;
    *this = std::move(result);
  }
  // Bytes as the characters that stand for them, now.
  void map_bytes();
};

// The characters that stand for bytes in byte-level vocabularies: printable ones for themselves,
// the others from U+0100 on.
uint32_t character_of_byte(unsigned char byte);
int byte_of_character(uint32_t code);  // -1: stands for none
std::string byte_characters(std::string_view bytes);

}  // namespace mase
