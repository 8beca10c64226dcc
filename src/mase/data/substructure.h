// SPDX-License-Identifier: Apache-2.0
// The 16 jet-substructure observables of the JSC data set, computed from a jet's particles.
//
// z_i is a particle's share of the jet's transverse momentum, t_ij the distance of two particles in
// rapidity and azimuth. All but the first and the last are taken on the jet groomed by mMDT
// (Dasgupta et al. 2013): Cambridge/Aachen clustering undone until a splitting has a share > 0.1.
//   e2(b) = sum z_i z_j t_ij^b                      C1 = e2
//   e3(b) = sum z_i z_j z_k (t_ij t_ik t_jk)^b      C2 = e3 / e2^2    D2(a, b) = e3(a) /
//   e2(b)^(3a/b) 1e3, 2e3: with the smallest, the two smallest of the three distances only
//                                                   M2 = 1e3 / e2     N2 = 2e3 / e2^2
// Energy correlations: Larkoski, Salam, Thaler 2013; Moult, Necib, Thaler 2016.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "mase/data/particle.h"

namespace mase {

constexpr int jet_feature_count = 16;

// "zlogz", "c1_b0_mmdt", ..., "mass_mmdt", "multiplicity", in the published order.
const std::vector<std::string>& jet_feature_names();

// The features of one jet. `particles` is used as working space.
std::array<float, jet_feature_count> jet_features(std::vector<Particle>& particles);

}  // namespace mase
