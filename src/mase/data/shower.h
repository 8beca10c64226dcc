// SPDX-License-Identifier: Apache-2.0
// A small simulation of boosted jets at a hadron collider, made to have the physics that separates
// (and confuses) the five classes, not to replace an event generator:
//   quark, gluon  angular-ordered parton shower with running coupling and the QCD colour factors
//   w, z          a colour singlet of the boson's mass decaying to two quarks, each showered
//   top           t -> b W, W -> q q', radiation off the top outside its dead cone
// then hadrons with limited transverse momentum, initial-state radiation and underlying event, and
// a detector that smears energies and merges what falls into one cell.
#pragma once

#include <vector>

#include "mase/base/random.h"
#include "mase/data/particle.h"

namespace mase {

enum class JetKind { gluon, quark, w, z, top };  // in the data set's class order: g q w z t

// The particles of one jet; `random` decides everything.
std::vector<Particle> simulate_jet(JetKind kind, Random& random);

}  // namespace mase
