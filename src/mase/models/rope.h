// SPDX-License-Identifier: Apache-2.0
// How fast the pairs of a head turn with the position, as config.json says it: `rope_parameters`,
// or `rope_theta` and `rope_scaling` of older folders.
#pragma once

#include <string>
#include <vector>

#include "mase/base/value.h"

namespace mase {

struct Rope {
  std::vector<float> frequencies;  // one for each pair
  double scale = 1;                // of the rotated pairs
  int64_t length = 0;              // texts that are longer are turned in another way; 0: none are
};

// `width` of a head; `tokens`: how long the text is, which some kinds depend on.
Rope rope_of(const Value& config, int64_t width, int64_t tokens, const std::string& place);

}  // namespace mase
