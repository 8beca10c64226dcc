// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/stream/plan.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "mase/hardware/emit/design.h"

namespace mase {
namespace {

constexpr int64_t control_registers = 14;  // of a stage, about

// What of a stage does not depend on how it is folded.
struct StageWidths {
  StageWidths(const StreamStage& stage, Multipliers multipliers)
      : weight(stage.weight_width()),
        sum(stage.sum_width()),
        in(stage.in.width),
        // Yosys puts products of so many bits into multiplier blocks.
        in_blocks(multipliers == Multipliers::any && in + weight >= 9) {}
  int weight, sum, in;
  bool in_blocks;
};

// A multiplier block is as dear as the look-up tables that it stands for.
double stage_area(const StreamStage& stage, const StageWidths& widths, int before, int after) {
  const double in_depth = static_cast<double>(stage.inputs()) / before;
  const double multipliers = static_cast<double>(before) * after;
  const double weight_bits = static_cast<double>(stage.inputs()) * stage.outputs() * widths.weight;
  return multipliers * (widths.in * widths.weight + widths.sum) + weight_bits / 64 +
         (after < stage.outputs() ? before * widths.in * 2 * in_depth / 3 : 0);
}

// Fitted to Yosys 0.23 on ten designs (docs/hardware.md): products outside of blocks, sums of
// those in blocks, tables of weights, and what every input bit has for buffers and choices.
double vector_luts(const StageWidths& widths, int before, int after, int64_t cycles,
                   Multipliers multipliers) {
  const double products = static_cast<double>(before) * after;
  const double table = cycles > 1 && cycles <= most_table_words
                           ? 1.069 * widths.weight * std::max(1.0, static_cast<double>(cycles) / 64)
                           : 0;
  if (multipliers == Multipliers::luts) {
    // Rows of two bits of the weight, and what adds them up.
    const double own =
        (widths.in + 2) * ((widths.weight + 1) / 2) + (before > 1 ? widths.in + widths.weight : 0);
    return products * (own + table) + after * widths.sum + 12.0 * before * widths.in;
  }
  const double own = widths.in_blocks ? 0.234 * widths.sum : 1.346 * widths.in * widths.weight;
  return products * (own + table) + 9.762 * before * widths.in;
}

std::vector<int> divisors(int number) {
  std::vector<int> result;
  for (int k = 1; k <= number; ++k)
    if (number % k == 0) result.push_back(k);
  return result;
}

// The cheapest way to every parallelism after each stage.
struct Way {
  double area = 0;
  int before = 0, given = 0;  // of the stage, and behind the one before it
};
using Ways = std::vector<std::map<int, Way>>;

// What the stage may take at once if so many elements come.
std::vector<int> taken(const StreamStage& stage, int given) {
  if (stage.windows)
    return given == stage.channels() ? std::vector<int>{given} : std::vector<int>{};
  std::vector<int> result;
  for (const int before : divisors(given))
    if (stage.inputs() % before == 0) result.push_back(before);
  return result;
}

Ways find_ways(const std::vector<StreamStage>& stages, int64_t cycles, Multipliers multipliers) {
  Ways ways(stages.size() + 1);
  if (stages[0].windows)
    ways[0][stages[0].channels()] = {};
  else
    for (const int p : divisors(stages[0].inputs())) ways[0][p] = {};
  for (size_t k = 0; k < stages.size(); ++k) {
    const StreamStage& stage = stages[k];
    const StageWidths widths(stage, multipliers);
    const bool plane_before = k > 0 && stages[k - 1].windows;
    for (const auto& [given, way] : ways[k])
      for (const int before : plane_before ? taken(stage, given) : std::vector<int>{given})
        for (const int after :
             stage.windows ? std::vector<int>{stage.outputs()} : divisors(stage.outputs())) {
          if (!stage.windows &&
              static_cast<int64_t>(stage.inputs() / before) * (stage.outputs() / after) > cycles)
            continue;
          if (k + 1 < stages.size() && stages[k + 1].windows && after != stages[k + 1].channels())
            continue;
          const double area =
              way.area + (stage.windows ? 0 : stage_area(stage, widths, before, after));
          const auto [entry, fresh] = ways[k + 1].try_emplace(after, Way{area, before, given});
          if (!fresh && area < entry->second.area) entry->second = {area, before, given};
        }
    if (ways[k + 1].empty())
      throw Error("--cycles", fmt::format("no row every {} cycles", cycles), "give more cycles");
  }
  return ways;
}

double functions_luts(const StreamStage& stage) {
  std::vector<double> own;
  for (const IntegerGraph& graph : stage.graphs) own.push_back(estimate(graph).luts);
  double all = 0;
  for (const int function : stage.functions) all += own[static_cast<size_t>(function)];
  return all;
}

// Lines and shifted columns of a plane, its sums and functions.
void cost_windows(const StreamStage& stage, StagePlan& plan) {
  const IntegerGraph::Sliding& s = *stage.windows;
  const WindowScan scan(s);
  const int64_t word = s.channels * stage.in.width;
  const int64_t lines = (s.kernel[0] - 1) * s.dilation[0];
  const bool padded = scan.rows > s.size[0] || scan.columns > s.size[1];
  plan.memory_bits = lines * word * scan.columns;
  plan.registers = lines * word + s.kernel[0] * (s.kernel[1] - 1) * s.dilation[1] * word +
                   stage.outputs() * (stage.sum_width() + stage.out.width) + 2 * control_registers;
  plan.luts = functions_luts(stage) + (padded ? static_cast<double>(word) : 0) + 40;
  if (stage.largest)
    plan.luts +=
        1.5 * stage.in.width * static_cast<double>((s.kernel[0] * s.kernel[1] - 1) * s.channels);
  else
    plan.luts += plan.products->luts;
}

void cost_vector(const StreamStage& stage, StagePlan& plan, Multipliers multipliers) {
  const StageWidths widths(stage, multipliers);
  plan.luts = vector_luts(widths, plan.before, plan.after, plan.cycles, multipliers);
  if (widths.in_blocks) plan.dsps = static_cast<int64_t>(plan.before) * plan.after;
  plan.registers =
      plan.after * (widths.sum + stage.out.width) + 2 * plan.before * widths.in + control_registers;
  if (plan.cycles > most_table_words)
    plan.memory_bits += plan.cycles * plan.before * plan.after * widths.weight;
  if (plan.after < stage.outputs()) plan.memory_bits += 2L * stage.inputs() * widths.in;
}

// Depths with which no stage ever waits for a buffer longer than the rows allow: what waits when
// none is limited, then as little as keeps the interval.
void find_buffers(const std::vector<StreamStage>& stages, StreamPlan& plan, int64_t wanted) {
  const StreamTiming free = run_timing(stages, plan.stages, wanted, true);
  for (size_t k = 1; k < stages.size(); ++k)
    plan.stages[k].buffer = std::max<int64_t>(2, free.most[k]);
  const auto keeps_up = [&] {
    return run_timing(stages, plan.stages, 0, false).interval <= wanted;
  };
  if (!keeps_up()) return;
  for (size_t k = 1; k < stages.size(); ++k) {
    int64_t low = 2, high = plan.stages[k].buffer;  // high keeps up
    while (low < high) {
      plan.stages[k].buffer = (low + high) / 2;
      if (keeps_up())
        high = plan.stages[k].buffer;
      else
        low = plan.stages[k].buffer + 1;
    }
    plan.stages[k].buffer = high;
  }
}

}  // namespace

int64_t default_cycles(const StreamNetwork& network) {
  int64_t cycles = 0;
  for (const StreamStage& stage : network.stages)
    if (stage.windows) cycles = std::max(cycles, WindowScan(*stage.windows).positions());
  return cycles == 0 ? 64 : cycles;
}

StreamPlan plan_stream(const StreamNetwork& network, int64_t cycles, Multipliers multipliers) {
  const std::vector<StreamStage>& stages = network.stages;
  if (cycles == 0) cycles = default_cycles(network);
  bool planes = false;
  for (const StreamStage& stage : stages) {
    if (!stage.windows) continue;
    planes = true;
    if (const int64_t least = WindowScan(*stage.windows).positions(); least > cycles)
      throw Error("--cycles",
                  fmt::format("no row every {} cycles: {} passes over {} positions", cycles,
                              printable(stage.name), least),
                  fmt::format("give at least {}", default_cycles(network)));
  }
  const Ways ways = find_ways(stages, cycles, multipliers);
  StreamPlan plan;
  const auto best =
      std::min_element(ways.back().begin(), ways.back().end(),
                       [](const auto& a, const auto& b) { return a.second.area < b.second.area; });
  plan.area = best->second.area;
  plan.stages.resize(stages.size());
  int after = best->first;
  for (size_t k = stages.size(); k-- > 0;) {
    const Way& way = ways[k + 1].at(after);
    plan.stages[k].before = way.before;
    plan.stages[k].after = after;
    after = way.given;
  }
  plan.latency = 1;
  for (size_t k = 0; k < stages.size(); ++k) {
    const StreamStage& stage = stages[k];
    StagePlan& own = plan.stages[k];
    if (stage.windows) {
      const int64_t scan = WindowScan(*stage.windows).positions();
      if (!stage.largest)
        own.products = window_products(stage, 1 + (cycles - scan) / stage.results());
      own.cycles = scan + (own.products ? own.products->digits - 1 : 0) * stage.results();
      cost_windows(stage, own);
    } else {
      const int64_t in_depth = stage.inputs() / own.before, out_depth = stage.outputs() / own.after;
      own.cycles = in_depth * out_depth;
      // A row that is used once is used as it arrives, others when they are there; then the sum,
      // the output register and the next skid buffer.
      plan.latency += (k == 0 ? in_depth : 1) + (out_depth > 1 ? in_depth * out_depth : 0) + 2;
      cost_vector(stage, own, multipliers);
    }
    plan.interval = std::max(plan.interval, own.cycles);
  }
  if (planes) {
    find_buffers(stages, plan, plan.interval);
    const StreamTiming timing = run_timing(stages, plan.stages, 0, false);
    plan.interval = timing.interval;
    plan.latency = timing.latency;
  }
  for (size_t k = 0; k < stages.size(); ++k) {
    StagePlan& own = plan.stages[k];
    const int64_t beat = (k == 0 ? own.before : plan.stages[k - 1].after) * stages[k].in.width;
    if (own.buffer > 2)
      own.memory_bits += own.buffer * beat;
    else if (planes)
      own.registers += 2 * beat;
    plan.luts += own.luts;
    plan.dsps += own.dsps;
    plan.registers += own.registers;
    plan.memory_bits += own.memory_bits;
  }
  return plan;
}

}  // namespace mase
