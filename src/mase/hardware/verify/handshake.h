// SPDX-License-Identifier: Apache-2.0
// How a stream's modules wait for one another, proved by visiting every state that their control
// can reach, whatever comes when: control is the registers that valid and ready depend on, which
// must depend on no data. A stage gives as many results as it was given operands for, neither more
// nor fewer, and never stops while it could go on; a queue gives everything in its order, takes as
// much as it has place for, and nothing more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/hardware/verify/netlist.h"

namespace mase {

// Of one row: how many results are due once so many operands were taken; the last entry is all.
struct BeatSchedule {
  std::vector<int64_t> due = {0, 1};
  int64_t in() const { return static_cast<int64_t>(due.size()) - 1; }
};

struct ControlProof {
  int64_t states = 0;
  std::string fault;    // a state and what is wrong with it; empty: nothing
  std::string unknown;  // why there is no proof
};

ControlProof check_stage_control(const Netlist& netlist, const BeatSchedule& schedule);
// Of so many beats. Without a memory its beats are tried with all their values: give it few bits.
ControlProof check_queue(const Netlist& netlist, int64_t depth);
// Shows the parts of a beat one after another, and takes it with the last one.
ControlProof check_parts(const Netlist& netlist, int64_t count);

}  // namespace mase
