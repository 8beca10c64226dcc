// SPDX-License-Identifier: Apache-2.0
// Random words of many counters at once, and what is left of values by them. Each has a plain twin
// in `reference`; words are those of philox to the bit.
#pragma once

#include <array>
#include <cstdint>

namespace mase::kernels {

// One stream of words: of counter {i, rest} the words 4 i to 4 i + 3.
struct WordStream {
  std::array<uint32_t, 3> rest;
  std::array<uint32_t, 2> key;
};

namespace reference {

// words [4 * count] of the counters from `first` on
void stream_words(const WordStream& stream, uint32_t first, int64_t count, uint32_t* words);
// out (+)= in * scale where the word is at least `threshold`, otherwise 0
void drop(const float* in, float* out, int64_t n, const uint32_t* words, uint32_t threshold,
          float scale, bool accumulate);

}  // namespace reference

void stream_words(const WordStream& stream, uint32_t first, int64_t count, uint32_t* words);
void drop(const float* in, float* out, int64_t n, const uint32_t* words, uint32_t threshold,
          float scale, bool accumulate);

}  // namespace mase::kernels
