// SPDX-License-Identifier: Apache-2.0
// Random numbers by counter (Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", 2011). A stream is named by seed, purpose and index, so that initialisation, shuffling
// and dropout never disturb each other, any element can be drawn by any thread, and a resumed run
// continues exactly. Same seed, same bits, on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mase {

// The raw block function: four words for each 128-bit counter and 64-bit key.
std::array<uint32_t, 4> philox(const std::array<uint32_t, 4>& counter,
                               const std::array<uint32_t, 2>& key);

class Random {
 public:
  Random(uint64_t seed, std::string_view purpose, uint64_t index = 0);

  uint32_t next_word();
  double uniform();  // [0, 1), 53 bits
  double uniform(double low, double high);
  float uniform_float();           // [0, 1), 24 bits
  double normal();                 // mean 0, deviation 1
  uint64_t below(uint64_t bound);  // unbiased, [0, bound)

  // A random order of 0..n-1 (Fisher-Yates).
  std::vector<uint32_t> permutation(uint32_t n);
  void shuffle(uint32_t* items, size_t count);

  // The position in the stream: save and restore to resume.
  uint64_t position() const { return position_; }
  void seek(uint64_t position);

 private:
  std::array<uint32_t, 2> key_{};
  std::array<uint32_t, 2> stream_{};
  std::array<uint32_t, 4> block_{};
  uint64_t position_ = 0;  // in words
};

}  // namespace mase
