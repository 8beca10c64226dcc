// SPDX-License-Identifier: Apache-2.0
#include "mase/text/pieces.h"

#include <algorithm>
#include <array>

namespace mase {
namespace {

struct ByteCharacters {
  std::array<uint32_t, 256> of_byte{};
  std::array<int, 512> of_code{};

  ByteCharacters() {
    of_code.fill(-1);
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool shown = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      of_byte[byte] = shown ? byte : next++;
      of_code[of_byte[byte]] = static_cast<int>(byte);
    }
  }
};

const ByteCharacters& byte_table() {
  static const ByteCharacters table;
  return table;
}

}  // namespace

uint32_t character_of_byte(unsigned char byte) { return byte_table().of_byte[byte]; }

int byte_of_character(uint32_t code) {
  const auto& codes = byte_table().of_code;
  return code < codes.size() ? codes[code] : -1;
}

std::string byte_characters(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) append_utf8(text, character_of_byte(static_cast<unsigned char>(c)));
  return text;
}

void Pieces::split(const TextPattern& pattern, SplitBehavior behavior, bool invert) {
  std::vector<TextSpan> result;
  result.reserve(text.text().size() / 4 + 1);
  for (const TextSpan& piece : pieces) {
    const size_t first = result.size();
    bool previous = false;          // whether the last stretch matched
    uint32_t waiting = UINT32_MAX;  // where a match began that goes with the next stretch
    pattern.each(text.text().substr(piece.begin, piece.end - piece.begin),
                 [&](size_t from, size_t to, bool matched) {
                   matched = matched != invert;
                   const TextSpan span{piece.begin + static_cast<uint32_t>(from),
                                       piece.begin + static_cast<uint32_t>(to)};
                   const bool any = result.size() > first;
                   switch (behavior) {
                     case SplitBehavior::removed:
                       if (!matched) result.push_back(span);
                       break;
                     case SplitBehavior::isolated:
                       result.push_back(span);
                       break;
                     case SplitBehavior::contiguous:
                       if (any && matched == previous)
                         result.back().end = span.end;
                       else
                         result.push_back(span);
                       break;
                     case SplitBehavior::merged_with_previous:
                       if (matched && !previous && any)
                         result.back().end = span.end;
                       else
                         result.push_back(span);
                       break;
                     case SplitBehavior::merged_with_next:
                       // The last of several matches goes with what is no match.
                       if (matched) {
                         if (waiting != UINT32_MAX) result.push_back({waiting, span.begin});
                         waiting = span.begin;
                       } else {
                         result.push_back({std::min(waiting, span.begin), span.end});
                         waiting = UINT32_MAX;
                       }
                       break;
                   }
                   previous = matched;
                 });
    if (waiting != UINT32_MAX) result.push_back({waiting, piece.end});
  }
  pieces = std::move(result);
}

void Pieces::map_bytes() {
  bytes_wanted = false;
  edit([](AlignedText& part, bool) {
    std::vector<CodeChange> changes;
    const std::string_view text = part.text();
    for (size_t at = 0; at < text.size();) {
      const uint32_t bytes = code_point_at(text, at).bytes;
      for (uint32_t i = 0; i < bytes; ++i)
        changes.push_back(
            {character_of_byte(static_cast<unsigned char>(text[at + i])), i > 0 ? 1 : 0});
      at += bytes;
    }
    part.transform(changes);
  });
}

}  // namespace mase
