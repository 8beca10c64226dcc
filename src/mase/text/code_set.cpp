// SPDX-License-Identifier: Apache-2.0
#include "mase/text/code_set.h"

#include <algorithm>

namespace mase {

bool CodeSet::contains(uint32_t code, uint32_t category) const {
  const auto holds = [&](const CodeSet& set) { return set.contains(code, category); };
  bool inside = (categories & category) != 0 ||
                std::any_of(ranges.begin(), ranges.end(),
                            [code](const auto& range) {
                              return code >= range.first && code <= range.second;
                            }) ||
                std::any_of(parts.begin(), parts.end(), holds);
  inside = inside && std::all_of(all.begin(), all.end(), holds);
  return inside != complement;
}

void CodeSet::add_borders(std::vector<uint32_t>& borders) const {
  for (const auto& [first, last] : ranges) {
    borders.push_back(first);
    borders.push_back(last + 1);
  }
  for (const CodeSet& set : parts) set.add_borders(borders);
  for (const CodeSet& set : all) set.add_borders(borders);
}

}  // namespace mase
