// SPDX-License-Identifier: Apache-2.0
// A stream's stages and the queues between them, and that they never stop for good. Every part
// takes and gives a fixed number of beats, whatever their values and times are (handshake.h), so
// that the order in which things happen decides nothing: where one order brings a row through and
// leaves everything as it was, no stall of any side can lead into a deadlock. That order is played
// here, each stage taking an operand that makes results only while there is place for one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/hardware/verify/handshake.h"
#include "mase/hardware/verify/netlist.h"

namespace mase {

struct FlowEdge {
  int from = -1;                    // a stage; none: the inputs
  int64_t depth = 2;                // beats that its queue holds
  int64_t parts = 1;                // a beat is shown in so many parts, behind which two more wait
  int64_t first_bit = 0, bits = 1;  // of what the source gives
  int64_t element_bits = 1;
  bool is_signed = false;
};

struct FlowStage {
  std::string module;
  std::vector<FlowEdge> sources;  // one, or two that are taken together
  int64_t element_bits = 1;       // as it takes them
  BeatSchedule schedule;
};

struct FlowClaim {
  std::string top;
  int64_t beats = 1;  // of the inputs, for a row
  std::vector<FlowStage> stages;
};

FlowClaim flow_claim(const Value& value, const std::string& place);

// What is wrong with it; empty: every row comes through, whoever stalls, and no queue overflows.
std::string flow_fault(const FlowClaim& flow);
// Whether the top module, its instances left as they are, connects them so; empty: it does.
std::string wiring_fault(const FlowClaim& flow, const Netlist& top);

}  // namespace mase
