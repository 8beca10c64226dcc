// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/cost/bill.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "mase/base/text.h"
#include "mase/hardware/carry/carry_chains.h"
#include "mase/hardware/cost/bit_times.h"
#include "mase/hardware/cost/estimate.h"
#include "mase/hardware/optimize/neuron_tables.h"

namespace mase {
namespace {

// Lines on which signals are declared: "  wire [7:0] name = ..." and "  logic name;".
std::map<std::string, int64_t, std::less<>> declared_lines(const std::string& text) {
  std::map<std::string, int64_t, std::less<>> lines;
  int64_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    std::string_view rest = line;
    bool found = false;
    for (const std::string_view word : {"  wire ", "  logic "})
      if (starts_with(rest, word)) {
        rest.remove_prefix(word.size());
        found = true;
        break;
      }
    if (!found) continue;
    if (starts_with(rest, "[")) rest.remove_prefix(std::min(rest.size(), rest.find("] ") + 2));
    lines.try_emplace(std::string(rest.substr(0, rest.find_first_of(" ;"))), number);
  }
  return lines;
}

}  // namespace

std::vector<BillEntry> bill_of(const IntegerGraph& graph, const std::vector<std::string>& signals,
                               const std::string& text) {
  const std::vector<char> is_result = layer_results(graph);
  const std::vector<double> times = last_bit_times(graph);
  const auto lines = declared_lines(text);
  std::vector<BillEntry> bill;
  std::vector<int> entry_of(graph.nodes.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    if (!is_result[i]) continue;
    entry_of[i] = static_cast<int>(bill.size());
    const auto line = lines.find(signals[i]);
    bill.push_back({.signal = signals[i],
                    .layer = node.layer >= 0 ? graph.layers[static_cast<size_t>(node.layer)] : "",
                    .range = node.range,
                    .frac = node.frac,
                    .levels = times[i],
                    .line = line == lines.end() ? 0 : line->second});
  }
  // Backwards: the results that a node serves without another result between.
  std::vector<std::set<int>> serves(graph.nodes.size());
  std::vector<CostShare> shares(bill.size()), own(bill.size());
  const std::vector<int> bits = bits_read(graph);
  const std::vector<char> inside = tables_in_chains(graph);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const IntegerNode& node = graph.nodes[i];
    if (entry_of[i] >= 0) serves[i] = {entry_of[i]};
    for (const IntegerId input : node.inputs) {
      const size_t from = static_cast<size_t>(input);
      const bool end = entry_of[from] >= 0 || graph.nodes[from].inputs.empty();
      if (!end) serves[from].insert(serves[i].begin(), serves[i].end());
    }
    const CostShare cost = inside[i] ? CostShare{} : cost_share(graph, node, bits[i]);
    for (const int entry : serves[i]) {
      const size_t e = static_cast<size_t>(entry);
      shares[e].add(cost, 1 / static_cast<double>(serves[i].size()));
      if (serves[i].size() == 1) own[e].add(cost, 1);
      bill[e].adders += cost.adders > 0;
    }
  }
  std::vector<std::set<IntegerId>> reads(bill.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const IntegerId input : graph.nodes[i].inputs) {
      const IntegerNode& from = graph.at(input);
      if (from.op->name == "constant") continue;
      if (entry_of[static_cast<size_t>(input)] < 0 && !from.inputs.empty()) continue;
      for (const int entry : serves[i]) reads[static_cast<size_t>(entry)].insert(input);
    }
  for (size_t e = 0; e < bill.size(); ++e) {
    bill[e].luts = estimated_luts(shares[e]);
    bill[e].own_luts = estimated_luts(own[e]);
    bill[e].inputs = static_cast<int64_t>(reads[e].size());
  }
  return bill;
}

Value to_value(const std::vector<BillEntry>& bill) {
  List entries;
  for (const BillEntry& entry : bill)
    entries.push_back(Dict{{"signal", entry.signal},
                           {"layer", entry.layer},
                           {"bits", entry.range.width()},
                           {"lowest", entry.range.low},
                           {"highest", entry.range.high},
                           {"fraction_bits", entry.frac},
                           {"inputs", entry.inputs},
                           {"adders", entry.adders},
                           {"luts", entry.luts},
                           {"own_luts", entry.own_luts},
                           {"levels", entry.levels},
                           {"line", entry.line}});
  return entries;
}

}  // namespace mase
