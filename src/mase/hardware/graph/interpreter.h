// SPDX-License-Identifier: Apache-2.0
// The vectorised interpreter of integer graphs: a block of rows at a time, every node one sweep
// over its lanes, in 32 bits where all intervals allow it. interpret_reference() is what it is
// tested against.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"
#include "mase/hardware/kernels/lanes.h"

namespace mase {

class IntegerProgram {
 public:
  explicit IntegerProgram(const IntegerGraph& graph);
  IntegerProgram(const IntegerProgram&) = delete;  // steps point into its own graph
  IntegerProgram& operator=(const IntegerProgram&) = delete;

  size_t inputs() const { return input_slots_.size(); }
  size_t outputs() const { return output_slots_.size(); }
  bool narrow() const { return narrow_; }  // all codes fit in 32 bits

  // Row-major codes; an input outside its interval is an error that names row and input.
  std::vector<int64_t> run(std::span<const int64_t> rows) const;
  // The same for narrow programs, for those who count jets per second.
  void run(const int32_t* rows, size_t count, int32_t* results) const;

 private:
  struct Step {
    const IntegerNode* general = nullptr;  // no kernel: row by row through the record
    std::vector<int> from;                 // slots
    int to = 0;
    size_t together = 0;  // steps from here on that have kernels
  };
  template <class T, class Code>
  void run_blocks(const Code* rows, size_t count, Code* results) const;

  IntegerGraph graph_;  // owns the nodes of general steps
  std::vector<Step> steps_;
  std::vector<LaneCall> calls_;                     // one a step; empty where it has no kernel
  std::vector<std::pair<int, int64_t>> constants_;  // slot and value
  std::vector<int> input_slots_, output_slots_;
  std::vector<IntegerRange> input_ranges_;
  int slots_ = 0;
  bool narrow_ = true;
};

}  // namespace mase
