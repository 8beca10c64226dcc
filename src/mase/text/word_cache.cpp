// SPDX-License-Identifier: Apache-2.0
#include "mase/text/word_cache.h"

namespace mase {
namespace {

constexpr size_t longest_kept = 256, most_kept_bytes = size_t{1} << 21, most_kept_pieces = 1 << 17;

}  // namespace

std::span<const PieceToken> WordCache::tokens(std::string_view piece, bool bytes) {
  if (piece.size() > longest_kept) {
    own_.clear();
    compute(piece, bytes, own_);
    return own_;
  }
  const uint64_t hash = text_hash(piece);
  uint32_t number = pieces_.find(piece, hash);
  if (number == StringIndex::none) {
    if (pieces_.bytes() > most_kept_bytes || pieces_.size() > most_kept_pieces) {
      pieces_.clear();
      ranges_.clear();
      tokens_.clear();
    }
    const auto begin = static_cast<uint32_t>(tokens_.size());
    compute(piece, bytes, tokens_);
    number = pieces_.add(piece, hash);
    ranges_.push_back({begin, static_cast<uint32_t>(tokens_.size())});
  }
  const Range range = ranges_[number];
  return {tokens_.data() + range.begin, range.end - range.begin};
}

void WordCache::compute(std::string_view piece, bool bytes, std::vector<PieceToken>& tokens) const {
  if (!bytes) {
    model_.tokenize(piece, tokens);
    return;
  }
  const size_t first = tokens.size();
  const std::string characters = byte_characters(piece);
  model_.tokenize(characters, tokens);
  // Each byte became one character: places in characters are places in bytes.
  size_t at = 0;
  uint32_t count = 0;
  const auto begun_before = [&](uint32_t place) {  // how many characters
    if (place < at) at = count = 0;
    for (; at < place; ++at) count += (static_cast<unsigned char>(characters[at]) & 0xC0) != 0x80;
    return count;
  };
  for (size_t i = first; i < tokens.size(); ++i) {
    tokens[i].begin = begun_before(tokens[i].begin + 1) - 1;
    tokens[i].end = begun_before(tokens[i].end);
  }
}

}  // namespace mase
