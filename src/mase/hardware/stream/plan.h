// SPDX-License-Identifier: Apache-2.0
// How a network's stages share clock cycles: what passes between them at once, how the sums of each
// are made, and the buffers between them, from a model of every stage's handshakes that is run
// clock cycle by clock cycle. What several stages read, all of them take in the same clock cycle; a
// stage that reads two takes both at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mase/hardware/stream/products.h"
#include "mase/hardware/stream/stages.h"

namespace mase {

enum class Multipliers { any, luts };  // what synthesis makes of a product, or tables only

// More weights than this, by clock cycles, are read from a memory.
inline constexpr int64_t most_table_words = 64;

// A stage over windows passes over its plane with the padding around it, a position each cycle.
struct WindowScan {
  explicit WindowScan(const IntegerGraph::Sliding& windows);
  int64_t rows = 0, columns = 0;                                           // with padding
  int64_t first_row = 0, first_column = 0, last_row = 0, last_column = 0;  // of windows' ends
  int64_t positions() const { return rows * columns; }
};

struct StagePlan {
  // Elements that pass at once before and behind it. A stage without windows takes
  // (inputs / before) * (outputs / after) clock cycles for a row.
  int before = 1, after = 1;
  std::optional<WindowProducts> products = {};  // of a stage over windows, if it has sums
  int64_t cycles = 0;                           // for a row, if nothing stalls
  // Of each source: elements of a beat that comes, and how many beats may wait.
  std::vector<int> given = {};
  std::vector<int64_t> buffers = {};
  double luts = 0;                  // what Yosys makes of it, by a model
  int64_t dsps = 0, registers = 0;  // multiplier blocks, bits
  int64_t memory_bits = 0;          // rows, lines and weights in memories
};

struct StreamPlan {
  std::vector<StagePlan> stages;
  int given = 1;         // elements of a beat of the inputs
  int64_t interval = 0;  // cycles between rows, by the run of the model
  int64_t latency = 0;   // from a row's first beat to its last result, nothing stalled
  double area = 0;       // what it was chosen by: multipliers, sums and tables of weights
  double luts = 0;
  int64_t dsps = 0, registers = 0, memory_bits = 0;
};
// As many as the planes have positions, and 64 where there is none.
int64_t default_cycles(const StreamNetwork& network);
// The cheapest that takes a row every `cycles` clock cycles; an error if none does. 0: the default.
StreamPlan plan_stream(const StreamNetwork& network, int64_t cycles,
                       Multipliers multipliers = Multipliers::any);

// The model: every stage, buffer and choice of elements as its registers say, clock cycle by clock
// cycle. With `interval` 0 rows are offered at once, else so many cycles apart.
struct StreamTiming {
  int64_t interval = 0, latency = 0;
  std::vector<std::vector<int64_t>> most;  // beats that waited before every stage, by source
  bool stuck = false;                      // buffers are too small for what goes side by side
};
StreamTiming run_timing(const StreamNetwork& network, const std::vector<StagePlan>& plans,
                        int64_t interval, bool unlimited);

}  // namespace mase
