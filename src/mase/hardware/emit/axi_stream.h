// SPDX-License-Identifier: Apache-2.0
// A stream design behind the ports of AXI4-Stream (ARM IHI 0051): whole bytes, tlast with the last
// beat of every row.
#pragma once

#include <cstdint>
#include <string>

namespace mase {

// Beats of one side: how many make a row, and what is in each.
struct AxiBeats {
  int64_t beats = 1;
  int bits = 8;
  bool is_signed = false;  // a beat is one number with a sign, which goes on above it
};
// The module TOP_axis. A tlast that comes with another beat than the last of a row sets frame_error
// until reset; rows are counted in beats.
std::string axi_stream_text(const std::string& top, const AxiBeats& in, const AxiBeats& out);

}  // namespace mase
