// SPDX-License-Identifier: Apache-2.0
#include "mase/base/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace mase {
namespace {

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// Spreads a 64-bit value over all its bits (the finaliser of splitmix64).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

}  // namespace

std::array<uint32_t, 4> philox(const std::array<uint32_t, 4>& counter,
                               const std::array<uint32_t, 2>& key) {
  std::array<uint32_t, 4> c = counter;
  std::array<uint32_t, 2> k = key;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c[2];
    c = {high(product1) ^ c[1] ^ k[0], low(product1), high(product0) ^ c[3] ^ k[1], low(product0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

Random::Random(uint64_t seed, std::string_view purpose, uint64_t index) {
  const uint64_t key = mix(seed + 0x9e3779b97f4a7c15ULL) ^ fnv1a(purpose);
  key_ = {low(key), high(key)};
  stream_ = {low(index), high(index)};
}

uint32_t Random::next_word() {
  const uint64_t block = position_ / 4;
  if (position_ % 4 == 0) block_ = philox({low(block), high(block), stream_[0], stream_[1]}, key_);
  return block_[position_++ % 4];
}

void Random::seek(uint64_t position) {
  position_ = position;
  const uint64_t block = position_ / 4;
  if (position_ % 4 != 0) block_ = philox({low(block), high(block), stream_[0], stream_[1]}, key_);
}

double Random::uniform() {
  const uint64_t word = (uint64_t{next_word()} << 32) | next_word();
  return static_cast<double>(word >> 11) * 0x1.0p-53;
}

double Random::uniform(double low_end, double high_end) {
  return low_end + (high_end - low_end) * uniform();
}

float Random::uniform_float() { return static_cast<float>(next_word() >> 8) * 0x1.0p-24f; }

double Random::normal() {
  // Box-Muller without keeping the second value: the position alone is the state.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

uint64_t Random::below(uint64_t bound) {
  if (bound <= 1) return 0;
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  while (true) {
    const uint64_t word = (uint64_t{next_word()} << 32) | next_word();
    if (word < limit) return word % bound;
  }
}

void Random::shuffle(uint32_t* items, size_t count) {
  // Partners are drawn some steps ahead, so that they are in the cache when their turn comes.
  constexpr size_t ahead = 32;
  size_t partners[ahead];
  for (size_t i = count; i > 1;) {
    const size_t steps = std::min(ahead, i - 1);
    for (size_t k = 0; k < steps; ++k) {
      // Lemire's multiply-shift: the bias is below 2^-32, far under what a shuffle can show.
      partners[k] = (uint64_t{next_word()} * (i - k)) >> 32;
      __builtin_prefetch(items + partners[k], 1);
    }
    for (size_t k = 0; k < steps; ++k, --i) std::swap(items[i - 1], items[partners[k]]);
  }
}

std::vector<uint32_t> Random::permutation(uint32_t n) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order.data(), order.size());
  return order;
}

}  // namespace mase
