// SPDX-License-Identifier: Apache-2.0
// SystemVerilog of stages and of what stands between them. All have valid and ready; a transfer is
// a rising clock with both. Elements lie side by side in one vector, the first one lowest.
#pragma once

#include <string>
#include <vector>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/stream/plan.h"

namespace mase {

// Modules of their own: a buffer of two beats, one of many, and the choice of a few elements of a
// position after another.
extern const char* const skid_buffer_text;
extern const char* const fifo_text;
extern const char* const elements_text;

// A stage's text, and the modules of its functions and sums, which are graphs.
struct StageText {
  EmittedFiles files;
  std::vector<GraphModule> modules;
  void add(const IntegerGraph& graph, const std::string& name);
};
StageText vector_stage_text(const StreamStage& stage, const StagePlan& plan,
                            const std::string& module, Multipliers multipliers);
StageText window_stage_text(const StreamStage& stage, const StagePlan& plan,
                            const std::string& module);

// Shared by both.
int index_bits(int64_t count);  // of a number below `count`
std::string packed_literal(const std::vector<int64_t>& numbers, int width);
// Bits [index * width, (index + 1) * width) as wide as `to`, which may be narrower.
std::string element_text(const std::string& name, int index, int width, bool is_signed, int to);
// Instance NAME of a function of sum_LANE; its result is NAME_y.
std::string function_text(const StreamStage& stage, const std::string& module, int function,
                          int lane, const std::string& name);
StageText function_modules(const StreamStage& stage, const std::string& module);
// Ports of a stage; what it says of itself stands above.
std::string stage_head(const std::string& remarks, const std::string& module, int bits_in,
                       int bits_out);

}  // namespace mase
