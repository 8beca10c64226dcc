// SPDX-License-Identifier: Apache-2.0
// A massless particle as jet physics counts it: transverse momentum in GeV, rapidity and azimuth
// relative to the jet axis.
#pragma once

namespace mase {

struct Particle {
  double pt = 0;
  double rapidity = 0;
  double azimuth = 0;
};

}  // namespace mase
