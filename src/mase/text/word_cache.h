// SPDX-License-Identifier: Apache-2.0
// The tokens of pieces that were seen before. Texts say the same words again and again: most pieces
// are found here, in the time it takes to read them. One for each thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mase/text/part.h"

namespace mase {

class WordCache {
 public:
  explicit WordCache(const TokenModel& model) : model_(model) {}

  // The tokens of a piece; valid until the next call. `bytes`: the model is to see the characters
  // that stand for the piece's bytes; places are those of the piece all the same.
  std::span<const PieceToken> tokens(std::string_view piece, bool bytes);

 private:
  void compute(std::string_view piece, bool bytes, std::vector<PieceToken>& tokens) const;

  struct Range {
    uint32_t begin, end;
  };
  const TokenModel& model_;
  StringIndex pieces_;
  std::vector<Range> ranges_;       // of each piece
  std::vector<PieceToken> tokens_;  // of all of them
  std::vector<PieceToken> own_;     // of one that is too long to be kept
};

}  // namespace mase
