// SPDX-License-Identifier: Apache-2.0
// The datapath of a design as a picture: a bar for each layer, from the level at which it begins to
// the one at which its last bit is there, with what it costs.
#pragma once

#include <string>
#include <vector>

namespace mase {

struct DatapathLayer {
  std::string name;
  double begin = 0, end = 0;  // levels of logic
  double luts = 0;
  std::string bits = {};  // of its results: "4 to 8"
};

std::string datapath_chart(const std::vector<DatapathLayer>& layers);

}  // namespace mase
