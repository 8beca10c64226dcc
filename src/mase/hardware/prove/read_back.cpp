// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/prove/read_back.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "mase/base/text.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/prove/net_evaluator.h"
#include "mase/hardware/prove/net_ports.h"
#include "mase/hardware/prove/proved_wires.h"

namespace mase {
namespace {

constexpr int most_operand_bits = 25;  // 2^25 values, 64 at a time
constexpr int few_operand_bits = 8;    // all values of these are tried at once

class Reader {
 public:
  Reader(const IntegerGraph& graph, const std::vector<std::string>& names, const Netlist& netlist)
      : graph_(graph),
        names_(names),
        netlist_(netlist),
        simulator_(netlist),
        wires_(graph, netlist) {}

  ReadBack run() {
    const std::vector<LinearForm> forms = linear_forms(graph_);
    for (size_t i = 0; i < graph_.nodes.size() && result_.fault.empty(); ++i) {
      const IntegerNode& node = graph_.nodes[i];
      if (!find_wire(i)) break;
      if (!node.op->evaluate) {
        wires_.remember(i);
        continue;
      }
      std::string fault;
      if (node.op->name == "register")
        fault = check_register(i);
      else if (node.op->entries)
        fault = check_table(i, forms[i]);
      else if (node.op->affine)
        fault = check_sum(i, forms[i]);
      else if (node.op->name == "floor" || node.op->name == "wrap")
        fault = check_slice(i);
      else
        fault = check_function(i);
      if (!fault.empty())
        result_.fault = fmt::format("{} ({}): {}", names_[i], node.op->name, fault);
      wires_.remember(i);
    }
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

  std::string check_sum(size_t index, const LinearForm& form) {
    // Equal modulo 2^width, and the interval fits the width: equal.
    switch (wires_.compare(index, form)) {
      case ProvedWires::Sum::not_affine:
        // Made of cells: all values of its operands, which are proved sums themselves.
        if (graph_.nodes[index].op->logic) return check_table(index, form);
        return "is not built from additions of what it should be";
      case ProvedWires::Sum::other:
        return "adds up to another sum";
      case ProvedWires::Sum::same:
        break;
    }
    if (!graph_.nodes[index].range.contains(range_of(form, graph_)))
      return "its sum does not fit its width";
    wires_.remember_form(index, form);
    ++result_.sums;
    return "";
  }

  // A table is tried with all values; one that is a sum is known by its form from then on.
  std::string check_table(size_t index, const LinearForm& form) {
    std::string fault = check_function(index);
    if (fault.empty() && graph_.nodes[index].op->affine) wires_.remember_form(index, form);
    return fault;
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
    const IntegerNode& node = graph_.nodes[index];
    const size_t source = static_cast<size_t>(node.inputs[0]);
    const NetBits& from = wires_.bits(source);
    const size_t drop = node.op->name == "floor" ? static_cast<size_t>(node.numbers[0]) : 0;
    const bool sign = graph_.nodes[source].range.is_signed();
    for (size_t k = 0; k < wires_.bits(index).size(); ++k) {
      const NetBit wanted = drop + k < from.size() ? from[drop + k] : sign ? from.back() : net_zero;
      if (wires_.bits(index)[k] != wanted) return fmt::format("bit {} is another one", k);
    }
    // A wrap with fewer bits than it says would drop some that are needed.
    if (node.op->name == "wrap") {
      const int width = static_cast<int>(node.numbers[0]);
      if (width_of(index) < std::min(width, width_of(source))) return "has too few bits";
    }
    ++result_.wires;
    return "";
  }

  // As functions of the operands' bits, for operations that say what they mean so. Nothing if these
  // grow too large.
  std::optional<std::string> check_logic(size_t index) {
    const IntegerNode& node = graph_.nodes[index];
    BitLogic logic;
    DecisionDiagram& diagram = logic.diagram();
    // Single bits choose and come first; the bits of words take turns, the highest first.
    std::map<NetBit, int> order;
    const auto place = [&](NetBit bit) {
      if (bit >= 0) order.try_emplace(bit, static_cast<int>(order.size()));
    };
    size_t widest = 0;
    for (const IntegerId id : node.inputs) {
      const NetBits& wire = wires_.bits(static_cast<size_t>(id));
      if (wire.size() == 1 && !node.op->affine) place(wire[0]);
    }
    // Bits of a sum that have the same weight stand side by side.
    std::vector<size_t> lift(node.inputs.size(), 0);
    if (node.op->affine) {
      const AffineRule rule = node.op->rule(context_of(graph_, node));
      for (size_t i = 0; i < lift.size(); ++i)
        lift[i] = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(rule.factors[i])));
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
    for (const IntegerId id : node.inputs) {
      const IntegerRange& range = graph_.at(id).range;
      LogicWord word{{}, range.is_signed()};
      for (const NetBit bit : wires_.bits(static_cast<size_t>(id))) {
        if (bit == net_unknown) return "an operand has an unknown bit";
        word.bits.push_back(evaluator.get(bit));
      }
      possible = diagram.both(possible, logic.within(word, range.low, range.high));
      operands.push_back(std::move(word));
    }
    const LogicWord wanted = logic.extended(
        node.op->logic(context_of(graph_, node), logic, operands), wires_.bits(index).size());
    for (size_t k = 0; k < wanted.bits.size(); ++k) {
      const Decision fault = diagram.both(
          possible, diagram.differ(wanted.bits[k], evaluator.get(wires_.bits(index)[k])));
      if (!evaluator.fault.empty()) return evaluator.fault;
      if (diagram.is_full()) return {};
      if (fault == DecisionDiagram::never) continue;
      const std::vector<bool> example = diagram.example(fault, static_cast<int>(order.size()));
      std::vector<std::string> codes;
      for (size_t i = 0; i < operands.size(); ++i) {
        int64_t code = 0;
        const LogicWord all = logic.extended(operands[i], 63);
        for (size_t bit = 0; bit < all.bits.size(); ++bit)
          code |= static_cast<int64_t>(diagram.value(all.bits[bit], example)) << bit;
        codes.push_back(std::to_string(operands[i].is_signed ? code << 1 >> 1 : code));
      }
      return fmt::format("bit {} differs for {}", k, join(codes, ", "));
    }
    ++result_.functions;
    return "";
  }

  // Every value of the operands.
  std::string check_function(size_t index) {
    const IntegerNode& node = graph_.nodes[index];
    std::vector<IntegerId> operands = node.inputs;
    int bits = 0;
    for (const IntegerId id : operands) bits += width_of(static_cast<size_t>(id));
    if (node.op->logic && bits > few_operand_bits)
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

  std::string try_values(size_t index, const std::vector<IntegerId>& operands,
                         const std::vector<std::vector<int64_t>>& batch) {
    const IntegerNode& node = graph_.nodes[index];
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
      const int64_t wanted = node.op->evaluate(batch[lane].data(), node);
      for (size_t bit = 0; bit < results.size(); ++bit)
        if ((results[bit] >> lane & 1) != static_cast<uint64_t>(wanted >> bit & 1))
          return fmt::format("differs for {}, where it should be {}", batch[lane][0], wanted);
    }
    return "";
  }

  const IntegerGraph& graph_;
  const std::vector<std::string>& names_;
  const Netlist& netlist_;
  NetSimulator simulator_;
  ReadBack result_;
  ProvedWires wires_;
};

}  // namespace

ReadBack read_back(const IntegerGraph& graph, const EmittedDesign& design, const Netlist& netlist) {
  ReadBack result = Reader(graph, design.signals, netlist).run();
  if (result.fault.empty()) result.fault = port_fault(graph, design, design.signals, netlist);
  return result;
}

}  // namespace mase
