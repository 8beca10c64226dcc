// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/check_module.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "mase/base/text.h"
#include "mase/hardware/verify/bit_logic.h"
#include "mase/hardware/verify/meanings.h"
#include "mase/hardware/verify/net_evaluator.h"
#include "mase/hardware/verify/net_ports.h"
#include "mase/hardware/verify/proved_wires.h"

namespace mase {
namespace {

constexpr int most_operand_bits = 25;  // 2^25 values, 64 at a time
constexpr int few_operand_bits = 8;    // all values of these are tried at once

class ModuleChecker {
 public:
  ModuleChecker(const ModuleClaim& claim, const Netlist& netlist)
      : graph_(claim.graph),
        names_(claim.signals),
        netlist_(netlist),
        simulator_(netlist),
        wires_(claim.graph, netlist) {}

  ModuleProof run() {
    visit_forms(graph_, [&](size_t i, const CheckedForm& form) {
      if (!result_.fault.empty() || !find_wire(i)) return;
      if (graph_.nodes[i].op)
        if (const std::string fault = check_node(i, form); !fault.empty())
          result_.fault = fmt::format("{} ({}): {}", names_[i], graph_.nodes[i].op->name, fault);
      wires_.remember(i);
    });
    return std::move(result_);
  }

 private:
  int width_of(size_t index) const { return wires_.width_of(index); }

  bool find_wire(size_t index) {
    const auto wire = netlist_.wires.find(names_[index]);
    if (wire == netlist_.wires.end() ||
        wire->second.size() != static_cast<size_t>(width_of(index))) {
      result_.fault = fmt::format("{}: no wire of {} bits", names_[index], width_of(index));
      return false;
    }
    wires_.set_bits(index, wire->second);
    return true;
  }

  std::string check_node(size_t index, const CheckedForm& form) {
    const CheckedNode& node = graph_.nodes[index];
    if (node.op->name == "register") return check_register(index);
    if (node.op->sum) return check_sum(index, form);
    return node.op->is_slice ? check_slice(index) : check_function(index);
  }

  std::string check_sum(size_t index, const CheckedForm& form) {
    // Equal modulo 2^width, and the interval fits the width: equal.
    const ProvedWires::Sum found = wires_.compare(index, form);
    if (found == ProvedWires::Sum::same) {
      if (!graph_.nodes[index].range.contains(interval_of(form, graph_)))
        return "its sum does not fit its width";
      ++result_.sums;
    } else {
      // Tables, cells, or a fault: by the values of its operands, which are proved already.
      const size_t left_out = result_.skipped.size();
      const std::string fault = check_function(index);
      if (!fault.empty()) return fault;
      if (result_.skipped.size() > left_out) {
        if (found == ProvedWires::Sum::other) return "adds up to another sum";
        return "";
      }
    }
    wires_.remember_form(index, form);
    return "";
  }

  std::string check_register(size_t index) {
    const NetBits& source = wires_.bits(static_cast<size_t>(graph_.nodes[index].inputs[0]));
    const NetBits& own = wires_.bits(index);
    std::set<NetBit> clocks;
    for (size_t k = 0; k < own.size(); ++k) {
      const auto driver = netlist_.driver.find(own[k]);
      if (driver == netlist_.driver.end()) return "is no register";
      const NetCell& cell = netlist_.cells[static_cast<size_t>(driver->second.first)];
      if (cell.type != "$dff") return fmt::format("is driven by a cell of type {}", cell.type);
      if (cell.port("D").at(static_cast<size_t>(driver->second.second)) != source[k])
        return "registers another value";
      clocks.insert(cell.port("CLK").at(0));
    }
    ++result_.wires;
    wires_.remember_same(index, graph_.nodes[index].inputs[0]);
    return clocks.size() == 1 ? "" : "has several clocks";
  }

  std::string check_slice(size_t index) {
    const CheckedNode& node = graph_.nodes[index];
    const size_t source = static_cast<size_t>(node.inputs[0]);
    const NetBits& from = wires_.bits(source);
    const bool wraps = node.op->name == "wrap";
    // Bits above those it keeps are no bits of the operand.
    if (wraps && width_of(index) > node.numbers[0]) return check_function(index);
    const size_t drop = wraps ? 0 : static_cast<size_t>(node.numbers[0]);
    const bool sign = graph_.nodes[source].range.is_signed();
    for (size_t k = 0; k < wires_.bits(index).size(); ++k) {
      const NetBit wanted = drop + k < from.size() ? from[drop + k] : sign ? from.back() : net_zero;
      if (wires_.bits(index)[k] != wanted) return fmt::format("bit {} is another one", k);
    }
    // A wrap with fewer bits than it says would drop some that are needed.
    if (wraps) {
      const int width = static_cast<int>(node.numbers[0]);
      if (width_of(index) < std::min(width, width_of(source))) return "has too few bits";
    }
    ++result_.wires;
    return "";
  }

  // As functions of the operands' bits, for operations that say what they mean so. Nothing if these
  // grow too large.
  std::optional<std::string> check_logic(size_t index) {
    const CheckedNode& node = graph_.nodes[index];
    BitLogic logic;
    DecisionDiagram& diagram = logic.diagram();
    // Single bits choose and come first; the bits of words take turns, the highest first.
    std::map<NetBit, int> order;
    const auto place = [&](NetBit bit) {
      if (bit >= 0) order.try_emplace(bit, static_cast<int>(order.size()));
    };
    size_t widest = 0;
    for (const CheckedId id : node.inputs) {
      const NetBits& wire = wires_.bits(static_cast<size_t>(id));
      if (wire.size() == 1 && !node.op->sum) place(wire[0]);
    }
    // Bits of a sum that have the same weight stand side by side.
    std::vector<size_t> lift(node.inputs.size(), 0);
    if (node.op->sum) {
      const SumMeaning sum = node.op->sum(node);
      for (size_t i = 0; i < lift.size(); ++i)
        if (sum.factors[i] != 0)
          lift[i] = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(sum.factors[i])));
    }
    for (size_t i = 0; i < lift.size(); ++i)
      widest = std::max(widest, lift[i] + wires_.bits(static_cast<size_t>(node.inputs[i])).size());
    for (size_t k = widest; k-- > 0;)
      for (size_t i = 0; i < lift.size(); ++i)
        if (const NetBits& wire = wires_.bits(static_cast<size_t>(node.inputs[i]));
            k >= lift[i] && k - lift[i] < wire.size())
          place(wire[k - lift[i]]);
    NetEvaluator<DecisionBits> evaluator(netlist_, {diagram});
    for (const auto& [bit, variable] : order) evaluator.set(bit, diagram.variable(variable));
    std::vector<LogicWord> operands;
    // Operands are proved already: values beyond their intervals never come.
    Decision possible = DecisionDiagram::always;
    for (const CheckedId id : node.inputs) {
      const Interval& range = graph_.at(id).range;
      LogicWord word{{}, range.is_signed()};
      for (const NetBit bit : wires_.bits(static_cast<size_t>(id))) {
        if (bit == net_unknown) return "an operand has an unknown bit";
        word.bits.push_back(evaluator.get(bit));
      }
      possible = diagram.both(possible, logic.within(word, range.low, range.high));
      operands.push_back(std::move(word));
    }
    const LogicWord wanted =
        logic.extended(logic_of(node, logic, operands), wires_.bits(index).size());
    for (size_t k = 0; k < wanted.bits.size(); ++k) {
      const Decision fault = diagram.both(
          possible, diagram.differ(wanted.bits[k], evaluator.get(wires_.bits(index)[k])));
      if (!evaluator.fault.empty()) return evaluator.fault;
      if (diagram.is_full()) return {};
      if (fault == DecisionDiagram::never) continue;
      const std::vector<bool> example = diagram.example(fault, static_cast<int>(order.size()));
      std::vector<int64_t> codes;
      for (size_t i = 0; i < operands.size(); ++i) {
        int64_t code = 0;
        const LogicWord all = logic.extended(operands[i], 63);
        for (size_t bit = 0; bit < all.bits.size(); ++bit)
          code |= static_cast<int64_t>(diagram.value(all.bits[bit], example)) << bit;
        codes.push_back(operands[i].is_signed && (code >> 62 & 1) != 0
                            ? code - (int64_t{1} << 62) - (int64_t{1} << 62)
                            : code);
      }
      return fmt::format("bit {} differs for {}", k, codes_text(codes));
    }
    ++result_.diagrams;
    return "";
  }

  static std::string codes_text(const std::vector<int64_t>& codes) {
    std::vector<std::string> texts;
    for (const int64_t code : codes) texts.push_back(std::to_string(code));
    return join(texts, ", ");
  }

  // Every value of the operands.
  std::string check_function(size_t index) {
    const CheckedNode& node = graph_.nodes[index];
    const std::vector<CheckedId>& operands = node.inputs;
    int bits = 0;
    for (const CheckedId id : operands) bits += width_of(static_cast<size_t>(id));
    if ((node.op->logic || node.op->sum) && bits > few_operand_bits)
      if (const std::optional<std::string> fault = check_logic(index)) return *fault;
    if (bits > most_operand_bits) {
      result_.skipped.push_back(names_[index]);
      return "";
    }
    std::vector<int64_t> codes(operands.size());
    for (size_t k = 0; k < operands.size(); ++k) codes[k] = graph_.at(operands[k]).range.low;
    std::vector<std::vector<int64_t>> batch;
    bool more = true;
    while (more) {
      batch.push_back(codes);
      // The next combination.
      size_t k = 0;
      while (k < operands.size()) {
        if (++codes[k] <= graph_.at(operands[k]).range.high) break;
        codes[k] = graph_.at(operands[k]).range.low;
        ++k;
      }
      more = k < operands.size();
      if (batch.size() == 64 || !more) {
        if (const std::string fault = try_values(index, operands, batch); !fault.empty())
          return fault;
        batch.clear();
      }
    }
    ++result_.functions;
    return "";
  }

  std::string try_values(size_t index, const std::vector<CheckedId>& operands,
                         const std::vector<std::vector<int64_t>>& batch) {
    const CheckedNode& node = graph_.nodes[index];
    simulator_.clear();
    // Operands are proved already: codes that contradict a constant bit of theirs, or give one net
    // two values, never come.
    uint64_t possible = ~uint64_t{0};
    std::map<NetBit, uint64_t> given;
    for (size_t k = 0; k < operands.size(); ++k) {
      const NetBits& wire = wires_.bits(static_cast<size_t>(operands[k]));
      for (size_t bit = 0; bit < wire.size(); ++bit) {
        uint64_t lanes = 0;
        for (size_t lane = 0; lane < batch.size(); ++lane)
          lanes |= static_cast<uint64_t>(batch[lane][k] >> bit & 1) << lane;
        if (wire[bit] == net_zero || wire[bit] == net_one)
          possible &= wire[bit] == net_one ? lanes : ~lanes;
        if (wire[bit] < 0) continue;
        const auto [known, fresh] = given.try_emplace(wire[bit], lanes);
        if (fresh)
          simulator_.set(wire[bit], lanes);
        else
          possible &= ~(known->second ^ lanes);
      }
    }
    std::vector<uint64_t> results;
    for (const NetBit bit : wires_.bits(index)) results.push_back(simulator_.get(bit));
    if (!simulator_.fault.empty()) return simulator_.fault;
    for (size_t lane = 0; lane < batch.size(); ++lane) {
      if ((possible >> lane & 1) == 0) continue;
      const int64_t wanted = value_of(node, batch[lane].data());
      for (size_t bit = 0; bit < results.size(); ++bit)
        if ((results[bit] >> lane & 1) != static_cast<uint64_t>(wanted >> bit & 1))
          return fmt::format("differs for {}, where it should be {}", codes_text(batch[lane]),
                             wanted);
    }
    return "";
  }

  const CheckedGraph& graph_;
  const std::vector<std::string>& names_;
  const Netlist& netlist_;
  NetSimulator simulator_;
  ModuleProof result_;
  ProvedWires wires_;
};

}  // namespace

ModuleProof check_module(const ModuleClaim& claim, const Netlist& netlist) {
  ModuleProof result = ModuleChecker(claim, netlist).run();
  if (result.fault.empty()) result.fault = port_fault(claim, netlist);
  if (!claim.network) return result;
  result.network = same_graph(*claim.network, claim.graph);
  if (result.fault.empty() && result.network.answer == SameGraph::Answer::different)
    result.fault = "its graph is not the network: " + result.network.reason;
  return result;
}

}  // namespace mase
