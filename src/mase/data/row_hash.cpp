// SPDX-License-Identifier: Apache-2.0
#include "mase/data/row_hash.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace mase {
namespace {

__extension__ using Wide = unsigned __int128;

uint64_t fold(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t key_a = 0x9e3779b97f4a7c15ULL, key_b = 0xbf58476d1ce4e5b9ULL;
constexpr uint64_t key_c = 0x94d049bb133111ebULL, key_d = 0xd6e8feb86659fd93ULL;

uint64_t canonical_bits(double value) {
  if (std::isnan(value)) return std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
  return value == 0 ? 0 : std::bit_cast<uint64_t>(value);
}

uint64_t load(const std::byte* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

RowHash hash_row(std::span<const double> cells) {
  uint64_t low = key_a, high = key_b;
  for (const double cell : cells) {
    const uint64_t bits = canonical_bits(cell);
    low = fold(low ^ bits, key_c) + std::rotl(bits, 23);
    high = fold(high + bits, key_d) ^ std::rotl(low, 41);
  }
  return {fold(low ^ key_d, high ^ key_a), fold(high ^ key_c, low ^ key_b)};
}

RowSet::RowSet(size_t expected) {
  slots_.resize(std::bit_ceil(std::max<size_t>(64, expected + expected / 4)));
}

bool RowSet::insert(const RowHash& hash) {
  if (hash == RowHash{}) return !std::exchange(has_zero_, true);
  if (used_ * 8 >= slots_.size() * 7) grow();
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash.low & mask;; at = (at + 1) & mask) {
    if (slots_[at] == hash) return false;
    if (slots_[at] == RowHash{}) {
      slots_[at] = hash;
      ++used_;
      return true;
    }
  }
}

void RowSet::grow() {
  std::vector<RowHash> old(slots_.size() * 2);
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const RowHash& hash : old) {
    if (hash == RowHash{}) continue;
    size_t at = hash.low & mask;
    while (!(slots_[at] == RowHash{})) at = (at + 1) & mask;
    slots_[at] = hash;
  }
}

uint64_t checksum(std::span<const std::byte> bytes) {
  uint64_t lanes[4] = {key_a, key_b, key_c, key_d};
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 64; at += 64, left -= 64)
    for (size_t i = 0; i < 4; ++i)
      lanes[i] = fold(load(at + 16 * i) ^ lanes[i], load(at + 16 * i + 8) ^ key_c);
  std::byte tail[64] = {};
  if (left > 0) std::memcpy(tail, at, left);
  for (size_t i = 0; i < 4; ++i)
    lanes[i] = fold(load(tail + 16 * i) ^ lanes[i], load(tail + 16 * i + 8) ^ key_b);
  return fold(lanes[0] ^ bytes.size(), lanes[1]) ^ fold(lanes[2], lanes[3] ^ key_a);
}

}  // namespace mase
