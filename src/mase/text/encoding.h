// SPDX-License-Identifier: Apache-2.0
// A sentence, or two, as tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "mase/text/aligned_text.h"

namespace mase {

struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;      // 0, or 1 for a second sentence where the model tells them apart
  std::vector<uint8_t> mask;       // 0: padding
  std::vector<uint8_t> special;    // 1: put there by the template, or padding
  std::vector<TextSpan> offsets;   // in characters of its own sentence; special tokens have none
  std::vector<int32_t> sentences;  // 0 or 1, of which sentence; -1: special
  std::vector<Encoding> windows;   // what did not fit, one window each

  size_t size() const { return ids.size(); }
};

enum class CutStrategy { longest_first, only_first, only_second };

struct Truncation {
  int64_t length = 0;  // most tokens, special ones among them
  CutStrategy strategy = CutStrategy::longest_first;
  int64_t stride = 0;  // tokens that a window shares with the one before
  bool left = false;   // cut at the beginning
};

struct Padding {
  int64_t length = 0;    // 0: the longest of a batch
  int64_t multiple = 0;  // 0: any length
  bool left = false;
  int32_t id = 0, type = 0;
};

// How many tokens of each sentence are kept. What cannot be is an Error.
std::pair<size_t, size_t> kept_tokens(size_t first, size_t second, bool pair, int64_t room,
                                      CutStrategy strategy);
// The tokens [begin, end) of windows of `length` that begin `length` - `stride` apart.
std::vector<TextSpan> token_windows(size_t tokens, size_t length, int64_t stride, bool left);
Encoding cut_encoding(const Encoding& encoding, TextSpan tokens);
// The first window, with the others in it.
Encoding in_windows(const Encoding& encoding, size_t length, const Truncation& truncation);
// Windows of both are combined, each with each: those of `to` with all of `from`, then `to` itself
// with those of `from`.
void append_encoding(Encoding& to, const Encoding& from);
void pad_encodings(std::vector<Encoding>& batch, const Padding& padding);

}  // namespace mase
