// SPDX-License-Identifier: Apache-2.0
// Sets of code points as regular expressions write them: ranges, general categories, unions,
// intersections and complements.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace mase {

struct CodeSet {
  std::vector<std::pair<uint32_t, uint32_t>> ranges = {};  // first and last
  uint32_t categories = 0;
  std::vector<CodeSet> parts = {};  // in it too
  std::vector<CodeSet> all = {};    // and only what is in each of these
  bool complement = false;

  bool operator==(const CodeSet&) const = default;
  // `category` is the code point's bit.
  bool contains(uint32_t code, uint32_t category) const;
  // Within the stretches between these, only the category matters.
  void add_borders(std::vector<uint32_t>& borders) const;
};

}  // namespace mase
