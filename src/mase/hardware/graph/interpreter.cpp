// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/graph/interpreter.h"

#include <algorithm>
#include <limits>

#include "mase/base/tensor.h"

namespace mase {

IntegerProgram::IntegerProgram(const IntegerGraph& graph) : graph_(graph) {
  const size_t count = graph_.nodes.size();
  // A value's memory is free again after its last user.
  std::vector<size_t> last_use(count, 0);
  for (size_t i = 0; i < count; ++i)
    for (const IntegerId input : graph_.nodes[i].inputs) last_use[static_cast<size_t>(input)] = i;
  for (const IntegerId id : graph_.outputs) last_use[static_cast<size_t>(id)] = count;
  std::vector<int> slot(count, -1), unused;
  const auto take = [&] {
    if (unused.empty()) return slots_++;
    const int free_slot = unused.back();
    unused.pop_back();
    return free_slot;
  };
  for (const IntegerId id : graph_.inputs) {
    slot[static_cast<size_t>(id)] = take();
    input_slots_.push_back(slot[static_cast<size_t>(id)]);
    input_ranges_.push_back(graph_.at(id).range);
  }
  for (size_t i = 0; i < count; ++i) {
    const IntegerNode& node = graph_.nodes[i];
    narrow_ = narrow_ && node.range.low >= std::numeric_limits<int32_t>::min() &&
              node.range.high <= std::numeric_limits<int32_t>::max();
    if (!node.op->evaluate) continue;
    if (node.inputs.empty()) {  // a constant: written once, in memory of its own
      slot[i] = slots_++;
      last_use[i] = count;
      constants_.emplace_back(slot[i], node.op->evaluate(nullptr, node));
      continue;
    }
    Step step;
    for (const IntegerId input : node.inputs) step.from.push_back(slot[static_cast<size_t>(input)]);
    // Operands that end here may be written over: every kernel reads a lane before it writes it.
    for (const IntegerId input : node.inputs)
      if (last_use[static_cast<size_t>(input)] == i && node.op->lanes) {
        const int freed = slot[static_cast<size_t>(input)];
        if (std::find(unused.begin(), unused.end(), freed) == unused.end()) unused.push_back(freed);
      }
    step.to = slot[i] = take();
    LaneCall& call = calls_.emplace_back();
    if (node.op->lanes)
      call = {node.op->lanes(node), step.from[0], step.from.back(), step.to, step.from};
    else
      step.general = &node;
    if (!node.op->lanes)
      for (const IntegerId input : node.inputs)
        if (last_use[static_cast<size_t>(input)] == i) {
          const int freed = slot[static_cast<size_t>(input)];
          if (std::find(unused.begin(), unused.end(), freed) == unused.end())
            unused.push_back(freed);
        }
    steps_.push_back(std::move(step));
  }
  for (const IntegerId id : graph_.outputs) output_slots_.push_back(slot[static_cast<size_t>(id)]);
  for (size_t i = steps_.size(); i-- > 0;)
    if (!steps_[i].general)
      steps_[i].together = 1 + (i + 1 < steps_.size() ? steps_[i + 1].together : 0);
}

template <class T, class Code>
void IntegerProgram::run_blocks(const Code* rows, size_t count, Code* results) const {
  const size_t width = inputs(), results_width = outputs();
  const auto memory =
      aligned_bytes(static_cast<size_t>(std::max(slots_, 1)) * lane_block * sizeof(T));
  T* const base = reinterpret_cast<T*>(memory.get());
  const auto lanes = [&](int slot) { return base + static_cast<size_t>(slot) * lane_block; };
  for (const auto& [slot, value] : constants_)
    std::fill(lanes(slot), lanes(slot) + lane_block, static_cast<T>(value));
  std::vector<int64_t> operands;
  for (size_t first = 0; first < count; first += lane_block) {
    const size_t filled = std::min<size_t>(lane_block, count - first);
    for (size_t k = 0; k < width; ++k) {
      T* const lane = lanes(input_slots_[k]);
      const Code low = static_cast<Code>(input_ranges_[k].low),
                 high = static_cast<Code>(input_ranges_[k].high);
      // Codes as they were given: what a lane does not hold must not become another number.
      bool outside = false;
      for (size_t r = 0; r < filled; ++r) {
        const Code code = rows[(first + r) * width + k];
        outside |= (code < low) | (code > high);
        lane[r] = static_cast<T>(code);
      }
      for (size_t r = filled; r < lane_block; ++r) lane[r] = static_cast<T>(low);
      if (!outside) continue;
      for (size_t r = first; r < first + filled; ++r)
        if (const Code code = rows[r * width + k]; code < low || code > high)
          throw Error(
              fmt::format("integer graph {}: row {}, input {}", printable(graph_.name), r, k),
              fmt::format("{} lies outside [{}, {}]", code, low, high));
    }
    for (size_t at = 0; at < steps_.size();) {
      const Step& step = steps_[at];
      if (!step.general) {
        lane_kernels(std::span(calls_).subspan(at, step.together), base);
        at += step.together;
        continue;
      }
      ++at;
      T* const to = lanes(step.to);
      operands.resize(step.from.size());
      for (size_t r = 0; r < lane_block; ++r) {
        for (size_t k = 0; k < step.from.size(); ++k) operands[k] = lanes(step.from[k])[r];
        to[r] = static_cast<T>(step.general->op->evaluate(operands.data(), *step.general));
      }
    }
    for (size_t k = 0; k < results_width; ++k) {
      const T* const lane = lanes(output_slots_[k]);
      for (size_t r = 0; r < filled; ++r) results[(first + r) * results_width + k] = lane[r];
    }
  }
}

std::vector<int64_t> IntegerProgram::run(std::span<const int64_t> rows) const {
  MASE_CHECK(inputs() > 0 && rows.size() % inputs() == 0, "{} codes for {} inputs", rows.size(),
             inputs());
  const size_t count = rows.size() / inputs();
  std::vector<int64_t> results(count * outputs());
  if (narrow_)
    run_blocks<int32_t>(rows.data(), count, results.data());
  else
    run_blocks<int64_t>(rows.data(), count, results.data());
  return results;
}

void IntegerProgram::run(const int32_t* rows, size_t count, int32_t* results) const {
  MASE_CHECK(narrow_, "the program needs 64 bits");
  run_blocks<int32_t>(rows, count, results);
}

}  // namespace mase
