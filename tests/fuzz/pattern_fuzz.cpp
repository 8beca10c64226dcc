// SPDX-License-Identifier: Apache-2.0
// coverage floor: 80
// A regular expression up to the first zero or line end, and a text to match after it.
#include <algorithm>

#include "fuzz/target.h"
#include "mase/base/error.h"
#include "mase/base/pattern.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(all.find_first_of(std::string_view("\0\n", 2)), all.size());
  try {
    const mase::Pattern pattern(all.substr(0, end));
    const std::string text = all.substr(std::min(end + 1, all.size()));
    return 1 + static_cast<size_t>(pattern.matches(text)) +
           static_cast<size_t>(pattern.occurs_in(text));
  } catch (const mase::Error&) {
    return 0;
  }
}
