// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/cost/bit_times.h"

#include <algorithm>

namespace mase {
namespace {

constexpr size_t carry_block = 4;

}  // namespace

BitTimes moved_bits(const BitTimes& bits, bool is_signed, int low, int from, int to) {
  BitTimes result;
  for (int i = from; i < to; ++i) {
    const int own = i - low;
    if (own >= 0 && own < static_cast<int>(bits.size()))
      result.push_back(bits[static_cast<size_t>(own)]);
    else
      result.push_back(own >= 0 && is_signed && !bits.empty() ? bits.back() : 0);
  }
  return result;
}

BitTimes sliced_bits(const IntegerContext& context, const BitTimes& bits, int from) {
  return moved_bits(bits, context.ranges[0].is_signed(), 0, from,
                    from + context.node.range.width());
}

BitTimes chain_times(const BitTimes& a, const BitTimes& b) {
  BitTimes sum;
  double carry = 0;
  for (size_t first = 0; first < a.size(); first += carry_block) {
    double latest = carry;
    for (size_t i = first; i < std::min(a.size(), first + carry_block); ++i) {
      latest = std::max({latest, a[i] + 1, b[i] + 1});
      sum.push_back(latest + 1);
    }
    carry = latest + 1;
  }
  return sum;
}

std::vector<double> last_bit_times(const IntegerGraph& graph) {
  std::vector<BitTimes> times(graph.nodes.size());
  std::vector<double> last(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    const size_t width = static_cast<size_t>(node.range.width());
    if (node.inputs.empty() || node.op->name == "register") {
      times[i].assign(width, 0);
      continue;
    }
    const IntegerContext context = context_of(graph, node);
    std::vector<BitTimes> operands;
    for (const IntegerId input : node.inputs) operands.push_back(times[static_cast<size_t>(input)]);
    if (node.op->times) {
      times[i] = node.op->times(context, operands);
    } else {
      double latest = 0;
      for (const BitTimes& operand : operands)
        for (const double time : operand) latest = std::max(latest, time);
      times[i].assign(width, latest + (node.op->delay ? node.op->delay(context) : 0));
    }
    times[i].resize(width, times[i].empty() ? 0 : times[i].back());
    for (const double time : times[i]) last[i] = std::max(last[i], time);
  }
  return last;
}

}  // namespace mase
