// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/published_hardware.h"

namespace mase {

const std::vector<PublishedHardware>& published_hardware() {
  static const std::string open_ml = "JSC OpenML", cern_box = "JSC CERNBox", unsaid = "not said";
  static const std::vector<PublishedHardware> figures = {
      {"NeuraLUT-Assemble", 0.760, 1780, 2.1, open_ml, unsaid},
      {"TreeLUT, large", 0.760, 2234, 2.7, open_ml, unsaid},
      {"TreeLUT, small", 0.750, 796, 1.1, open_ml, unsaid},
      {"DWN with encoder", 0.763, 7011, {}, open_ml, "counted"},
      {"DWN without encoder", 0.763, 4972, {}, open_ml, "not counted"},
      {"hls4ml MLP", 0.762, 63251, 45, open_ml, unsaid, "and 38 DSP"},
      {"NeuraLUT-Assemble", 0.750, 8539, {}, cern_box, unsaid},
      {"HGQ-LUT", 0.754, 6042, 10.1, cern_box, unsaid},
      {"KANELE", 0.751, 5034, 8.1, cern_box, unsaid},
      {"HGQ", 0.751, 5974, 24.6, cern_box, unsaid},
  };
  return figures;
}

}  // namespace mase
