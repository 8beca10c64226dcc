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

// What the stage may take at once of so many elements.
std::vector<int> taken(const StreamStage& stage, int given) {
  std::vector<int> result;
  for (const int before : divisors(given))
    if (stage.inputs() % before == 0) result.push_back(before);
  return result;
}

// Whether it takes what the stage before it gives at once, however many elements that are: neither
// a position of a plane, nor what others read too.
bool follows(const StreamNetwork& network, size_t k) {
  const StreamSource& source = network.stages[k].sources[0];
  return source.stage < 0 ? k == 0 && !network.whole_inputs && !network.stages[0].windows
                          : !network.stages[static_cast<size_t>(source.stage)].whole;
}

Ways find_ways(const StreamNetwork& network, int64_t cycles, Multipliers multipliers) {
  const std::vector<StreamStage>& stages = network.stages;
  Ways ways(stages.size() + 1);
  if (follows(network, 0))
    for (const int p : divisors(stages[0].inputs())) ways[0][p] = {};
  else
    ways[0][network.channels] = {};
  for (size_t k = 0; k < stages.size(); ++k) {
    const StreamStage& stage = stages[k];
    const StageWidths widths(stage, multipliers);
    for (const auto& [last, way] : ways[k]) {
      const int given = follows(network, k) ? last : stage.sources[0].count;
      std::vector<int> befores = {stage.windows ? stage.channels() : given};
      if (!stage.windows && !follows(network, k)) befores = taken(stage, given);
      for (const int before : befores)
        for (const int after :
             stage.whole ? std::vector<int>{stage.outputs()} : divisors(stage.outputs())) {
          if (!stage.windows &&
              static_cast<int64_t>(stage.inputs() / before) * (stage.outputs() / after) > cycles)
            continue;
          const double area =
              way.area + (stage.windows ? 0 : stage_area(stage, widths, before, after));
          const auto [entry, fresh] = ways[k + 1].try_emplace(after, Way{area, before, last});
          if (!fresh && area < entry->second.area) entry->second = {area, before, last};
        }
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
// none is limited, and one more (a full buffer takes nothing even while it gives), then as little
// as keeps the interval.
void find_buffers(const StreamNetwork& network, StreamPlan& plan, int64_t wanted) {
  const StreamTiming free = run_timing(network, plan.stages, wanted, true);
  std::vector<std::pair<int64_t*, int64_t>> buffers;
  for (size_t k = 0; k < plan.stages.size(); ++k)
    for (size_t i = 0; i < plan.stages[k].buffers.size(); ++i) {
      // Alone before the first stage nothing has to wait.
      if (network.stages[k].sources[i].stage < 0 && !network.whole_inputs) continue;
      buffers.emplace_back(&plan.stages[k].buffers[i], free.most[k][i]);
    }
  for (const auto& [depth, most] : buffers) *depth = std::max<int64_t>(2, most + 1);
  const auto keeps_up = [&] {
    return run_timing(network, plan.stages, 0, false).interval <= wanted;
  };
  if (!keeps_up()) return;
  for (const auto& [depth, most] : buffers) {
    int64_t low = 2, high = *depth;  // high keeps up
    while (low < high) {
      *depth = (low + high) / 2;
      if (keeps_up())
        high = *depth;
      else
        low = *depth + 1;
    }
    *depth = high;
  }
}

}  // namespace

int64_t default_cycles(const StreamNetwork& network) {
  int64_t cycles = 0;
  for (const StreamStage& stage : network.stages)
    if (stage.windows) cycles = std::max(cycles, WindowScan(*stage.windows).positions());
  return cycles <= 1 ? 64 : cycles;
}

StreamPlan plan_stream(const StreamNetwork& network, int64_t cycles, Multipliers multipliers) {
  const std::vector<StreamStage>& stages = network.stages;
  const bool asked = cycles != 0;
  if (!asked) cycles = default_cycles(network);
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
  const Ways ways = find_ways(network, cycles, multipliers);
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
  plan.given = after;
  for (size_t k = 0; k < stages.size(); ++k)
    for (const StreamSource& source : stages[k].sources) {
      const bool alone = source.stage < 0 ? !network.whole_inputs : follows(network, k);
      plan.stages[k].given.push_back(!alone             ? source.count
                                     : source.stage < 0 ? plan.given
                                                        : plan.stages[k - 1].after);
      plan.stages[k].buffers.push_back(2);
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
    find_buffers(network, plan, plan.interval);
    const StreamTiming timing = run_timing(network, plan.stages, 0, false);
    MASE_CHECK(!timing.stuck, "a stream that comes to no end");
    if (asked && timing.interval > cycles)
      throw Error("--cycles",
                  fmt::format("no row every {} cycles: its stages wait for one another, and a row "
                              "comes every {}",
                              cycles, timing.interval),
                  "give more cycles");
    plan.interval = timing.interval;
    plan.latency = timing.latency;
  }
  for (size_t k = 0; k < stages.size(); ++k) {
    StagePlan& own = plan.stages[k];
    for (size_t i = 0; i < own.buffers.size(); ++i) {
      const int64_t beat = own.given[i] * stages[k].in.width;
      if (own.buffers[i] > 2)
        own.memory_bits += own.buffers[i] * beat;
      else if (planes)
        own.registers += 2 * beat;
    }
    plan.luts += own.luts;
    plan.dsps += own.dsps;
    plan.registers += own.registers;
    plan.memory_bits += own.memory_bits;
  }
  return plan;
}

}  // namespace mase
