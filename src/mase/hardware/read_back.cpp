// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/read_back.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "mase/base/text.h"
#include "mase/hardware/linear_form.h"
#include "mase/hardware/net_evaluator.h"

namespace mase {
namespace {

constexpr int most_operand_bits = 25;  // 2^25 values, 64 at a time
constexpr int few_operand_bits = 8;    // all values of these are tried at once

// Factors in units of 2^-scale: slices above a wire's lowest bits divide by powers of two.
__extension__ typedef __int128 Big;
constexpr int scale_bits = 62;

// A root's value, or these bits as a plain number: the same bits are the same number, whichever
// wires they stand in.
struct Variable {
  IntegerId node;
  NetBits bits;
  auto operator<=>(const Variable&) const = default;
};

struct AffineText {
  std::map<Variable, Big> terms;
  Big constant = 0;

  void add(const AffineText& other, Big factor, int down) {
    for (const auto& [variable, value] : other.terms) {
      Big& mine = terms[variable];
      mine += (value >> down) * factor;
      if (mine == 0) terms.erase(variable);
    }
    constant += (other.constant >> down) * factor;
  }
};

class Reader {
 public:
  Reader(const IntegerGraph& graph, const std::vector<std::string>& names, const Netlist& netlist)
      : graph_(graph), names_(names), netlist_(netlist), simulator_(netlist) {}

  ReadBack run() {
    const std::vector<LinearForm> forms = linear_forms(graph_);
    bits_.resize(graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size() && result_.fault.empty(); ++i) {
      const IntegerNode& node = graph_.nodes[i];
      if (!find_wire(i)) break;
      if (!node.op->evaluate) {
        remember(i);
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
      remember(i);
    }
    return std::move(result_);
  }

 private:
  int width_of(size_t index) const { return std::max(1, graph_.nodes[index].range.width()); }

  bool find_wire(size_t index) {
    const auto wire = netlist_.wires.find(names_[index]);
    if (wire == netlist_.wires.end() ||
        wire->second.size() != static_cast<size_t>(width_of(index))) {
      result_.fault = fmt::format("{}: no wire of {} bits", names_[index], width_of(index));
      return false;
    }
    bits_[index] = wire->second;
    return true;
  }

  // Where a bit stands in wires that are proved already.
  void remember(size_t index) {
    if (!graph_.nodes[index].range.is_signed())
      plain_.try_emplace(bits_[index], static_cast<IntegerId>(index));
    for (size_t k = 0; k < bits_[index].size(); ++k)
      if (bits_[index][k] >= 0)
        places_[bits_[index][k]].push_back({static_cast<IntegerId>(index), static_cast<int>(k)});
  }

  // The value of a proved wire in terms of roots.
  AffineText value_of(IntegerId id) {
    AffineText text;
    const auto known = values_.find(id);
    if (known != values_.end()) return known->second;
    text.terms[{id, {}}] = Big{1} << scale_bits;
    return text;
  }

  // The value of a wire's lowest bits.
  AffineText lowest(IntegerId id, int count) {
    AffineText text;
    if (count == 0) return text;
    const NetBits& wire = bits_[static_cast<size_t>(id)];
    NetBits bits(wire.begin(), wire.begin() + std::min<std::ptrdiff_t>(count, std::ssize(wire)));
    // Zeros above change nothing, and without them it may be a wire that is known.
    while (!bits.empty() && bits.back() == net_zero) bits.pop_back();
    if (bits.empty()) return text;
    if (const auto whole = plain_.find(bits); whole != plain_.end()) return value_of(whole->second);
    text.terms[{-1, std::move(bits)}] = Big{1} << scale_bits;
    return text;
  }

  // What a vector means, modulo 2^(its width). Nothing if it is not affine.
  std::optional<AffineText> meaning(const NetBits& bits, int depth) {
    AffineText total;
    const int size = static_cast<int>(bits.size());
    int at = 0;
    while (at < size) {
      const NetBit bit = bits[static_cast<size_t>(at)];
      if (bit == net_zero || bit == net_one) {
        if (bit == net_one) total.constant += Big{1} << (scale_bits + at);
        ++at;
        continue;
      }
      if (bit < 0) return {};
      int taken = 0;
      if (const auto places = places_.find(bit); places != places_.end())
        taken = take_slice(bits, at, places->second, total);
      if (taken == 0) taken = take_cell(bits, at, depth, total);
      if (taken == 0) return {};
      at += taken;
    }
    return total;
  }

  // A slice of a proved wire, with its sign repeated above it if it has one and ends the vector.
  int take_slice(const NetBits& bits, int at, const std::vector<std::pair<IntegerId, int>>& places,
                 AffineText& total) {
    const int size = static_cast<int>(bits.size());
    int best = 0, best_rank = 0;
    IntegerId best_id = -1;
    int best_from = 0;
    for (const auto& [id, from] : places) {
      const NetBits& wire = bits_[static_cast<size_t>(id)];
      int run = 0;
      while (at + run < size && from + run < static_cast<int>(wire.size()) &&
             bits[static_cast<size_t>(at + run)] == wire[static_cast<size_t>(from + run)])
        ++run;
      // Repeated sign bits belong to the slice.
      if (from + run == static_cast<int>(wire.size()) && graph_.at(id).range.is_signed())
        while (at + run < size && bits[static_cast<size_t>(at + run)] == wire.back()) ++run;
      // A whole wire before a part of one, parts that end where the wire does before others: that
      // is what the sum was written with.
      const int rank = 2 * (from + run >= static_cast<int>(wire.size())) + (from == 0);
      if (run > best || (run == best && rank >= best_rank)) {
        best = run;
        best_rank = rank;
        best_id = id;
        best_from = from;
      }
    }
    if (best == 0) return 0;
    const int wire_width = width_of(static_cast<size_t>(best_id));
    const bool reaches_top = best_from + best >= wire_width;
    // Modulo 2^size, bits that end the vector are the wire divided by 2^from, whatever is above.
    if (at + best == size || (reaches_top && !graph_.at(best_id).range.is_signed()))
      total.add(value_of(best_id), Big{1} << at, best_from);
    else if (best_from + best > wire_width)  // signs repeated in the middle: the bits that they are
      return take_bits(bits, at, best, total);
    else
      total.add(lowest(best_id, best_from + best), Big{1} << at, best_from);
    if (best_from > 0) total.add(lowest(best_id, best_from), -(Big{1} << at), best_from);
    return best;
  }

  static int take_bits(const NetBits& bits, int at, int count, AffineText& total) {
    Variable run{-1, NetBits(bits.begin() + at, bits.begin() + at + count)};
    Big& factor = total.terms[run];
    factor += Big{1} << (scale_bits + at);
    return count;
  }

  // The whole output of an adder or inverter that ends the vector.
  int take_cell(const NetBits& bits, int at, int depth, AffineText& total) {
    const auto driver = netlist_.driver.find(bits[static_cast<size_t>(at)]);
    if (driver == netlist_.driver.end() || driver->second.second != 0 || depth > 3) return 0;
    const NetCell& cell = netlist_.cells[static_cast<size_t>(driver->second.first)];
    const NetBits& out = cell.port("Y");
    if (at + out.size() != bits.size() || !std::equal(out.begin(), out.end(), bits.begin() + at))
      return 0;
    const bool adds = cell.type == "$add", subtracts = cell.type == "$sub";
    if (!adds && !subtracts && cell.type != "$not") return 0;
    if (cell.port("A").size() != out.size()) return 0;
    const std::optional<AffineText> a = meaning(cell.port("A"), depth + 1);
    if (!a) return 0;
    if (cell.type == "$not") {
      total.add(*a, -(Big{1} << at), 0);
      total.constant -= Big{1} << (scale_bits + at);
      return static_cast<int>(out.size());
    }
    if (cell.port("B").size() != out.size()) return 0;
    const std::optional<AffineText> b = meaning(cell.port("B"), depth + 1);
    if (!b) return 0;
    total.add(*a, Big{1} << at, 0);
    total.add(*b, (subtracts ? -1 : 1) * (Big{1} << at), 0);
    return static_cast<int>(out.size());
  }

  // A sum of single bits, modulo 2^128: 2^width divides that in units of 2^-scale.
  __extension__ typedef unsigned __int128 Wide;
  struct BitSum {
    std::map<NetBit, Wide> factors;
    Wide constant = 0;
    bool known = true;  // no bit is undefined

    void add(const NetBits& bits, bool is_signed, Wide factor) {
      for (size_t k = 0; k < bits.size(); ++k) {
        const Wide weight = is_signed && k + 1 == bits.size() ? -(factor << k) : factor << k;
        if (bits[k] == net_one)
          constant += weight;
        else if (bits[k] >= 0)
          factors[bits[k]] += weight;
        else
          known = known && bits[k] == net_zero;
      }
    }
  };

  void add_bits(BitSum& sum, const AffineText& text, Wide times) const {
    sum.constant += static_cast<Wide>(text.constant) * times;
    for (const auto& [variable, factor] : text.terms) {
      const bool whole = variable.node >= 0;
      sum.add(whole ? bits_[static_cast<size_t>(variable.node)] : variable.bits,
              whole && graph_.at(variable.node).range.is_signed(),
              static_cast<Wide>(factor) * times);
    }
  }

  // Whether it is zero modulo 2^width. What cancels is seen in single bits, since the same bits may
  // stand in several wires; the bits of a sum are replaced by what they add up to, the latest sums
  // first, by the lowest bit that no wire had before.
  bool is_zero(const AffineText& difference, int width) const {
    const Wide mask = (Wide{1} << (scale_bits + width)) - 1;
    BitSum sum;
    add_bits(sum, difference, 1);
    const auto replaced = [&](IntegerId id) {
      const NetBits& bits = bits_[static_cast<size_t>(id)];
      for (size_t k = 0; k < bits.size(); ++k) {
        if (bits[k] < 0 || places_.at(bits[k]).front().first != id) continue;
        const Wide factor = sum.factors[bits[k]];
        if (factor == 0 || (factor & ((Wide{1} << k) - 1)) != 0) return;
        const Wide times = factor >> k;
        sum.add(bits, graph_.at(id).range.is_signed(), -times);
        // Units of 2^-scale are in `times` already.
        AffineText value = values_.at(id);
        for (auto& [variable, own] : value.terms) own >>= scale_bits;
        value.constant >>= scale_bits;
        add_bits(sum, value, times);
        return;
      }
    };
    std::set<IntegerId> sums;
    for (const auto& [bit, factor] : sum.factors)
      if (const auto place = places_.find(bit); place != places_.end())
        if (const IntegerId id = place->second.front().first; values_.count(id)) sums.insert(id);
    for (auto id = sums.rbegin(); id != sums.rend(); ++id) replaced(*id);
    return sum.known && (sum.constant & mask) == 0 &&
           std::all_of(sum.factors.begin(), sum.factors.end(),
                       [&](const auto& entry) { return (entry.second & mask) == 0; });
  }

  std::string check_sum(size_t index, const LinearForm& form) {
    const std::optional<AffineText> found = meaning(bits_[index], 0);
    if (!found) return "is not built from additions of what it should be";
    AffineText difference = *found;
    for (const auto& [root, factor] : form.terms) {
      AffineText one;
      one.terms[{root, {}}] = Big{1} << scale_bits;
      difference.add(one, -Big{factor}, 0);
    }
    difference.constant -= Big{form.constant} << scale_bits;
    // Equal modulo 2^width, and the interval fits the width: equal.
    if (!is_zero(difference, width_of(index))) return "adds up to another sum";
    if (!graph_.nodes[index].range.contains(range_of(form, graph_)))
      return "its sum does not fit its width";
    remember_form(index, form);
    ++result_.sums;
    return "";
  }

  void remember_form(size_t index, const LinearForm& form) {
    AffineText value;
    for (const auto& [root, factor] : form.terms)
      value.terms[{root, {}}] = Big{factor} << scale_bits;
    value.constant = Big{form.constant} << scale_bits;
    values_[static_cast<IntegerId>(index)] = std::move(value);
  }

  // A table is tried with all values; one that is a sum is known by its form from then on.
  std::string check_table(size_t index, const LinearForm& form) {
    std::string fault = check_function(index);
    if (fault.empty() && graph_.nodes[index].op->affine) remember_form(index, form);
    return fault;
  }

  std::string check_register(size_t index) {
    const NetBits& source = bits_[static_cast<size_t>(graph_.nodes[index].inputs[0])];
    const NetBits& own = bits_[index];
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
    values_[static_cast<IntegerId>(index)] = value_of(graph_.nodes[index].inputs[0]);
    return clocks.size() == 1 ? "" : "has several clocks";
  }

  std::string check_slice(size_t index) {
    const IntegerNode& node = graph_.nodes[index];
    const size_t source = static_cast<size_t>(node.inputs[0]);
    const NetBits& from = bits_[source];
    const size_t drop = node.op->name == "floor" ? static_cast<size_t>(node.numbers[0]) : 0;
    const bool sign = graph_.nodes[source].range.is_signed();
    for (size_t k = 0; k < bits_[index].size(); ++k) {
      const NetBit wanted = drop + k < from.size() ? from[drop + k] : sign ? from.back() : net_zero;
      if (bits_[index][k] != wanted) return fmt::format("bit {} is another one", k);
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
      const NetBits& wire = bits_[static_cast<size_t>(id)];
      if (wire.size() == 1) place(wire[0]);
      widest = std::max(widest, wire.size());
    }
    for (size_t k = widest; k-- > 0;)
      for (const IntegerId id : node.inputs)
        if (const NetBits& wire = bits_[static_cast<size_t>(id)]; k < wire.size()) place(wire[k]);
    NetEvaluator<DecisionBits> evaluator(netlist_, {diagram});
    for (const auto& [bit, variable] : order) evaluator.set(bit, diagram.variable(variable));
    std::vector<LogicWord> operands;
    // Operands are proved already: values beyond their intervals never come.
    Decision possible = DecisionDiagram::always;
    for (const IntegerId id : node.inputs) {
      const IntegerRange& range = graph_.at(id).range;
      LogicWord word{{}, range.is_signed()};
      for (const NetBit bit : bits_[static_cast<size_t>(id)]) {
        if (bit == net_unknown) return "an operand has an unknown bit";
        word.bits.push_back(evaluator.get(bit));
      }
      possible = diagram.both(possible, logic.within(word, range.low, range.high));
      operands.push_back(std::move(word));
    }
    const LogicWord wanted = logic.extended(
        node.op->logic(context_of(graph_, node), logic, operands), bits_[index].size());
    for (size_t k = 0; k < wanted.bits.size(); ++k) {
      const Decision fault =
          diagram.both(possible, diagram.differ(wanted.bits[k], evaluator.get(bits_[index][k])));
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
      const NetBits& wire = bits_[static_cast<size_t>(operands[k])];
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
    for (const NetBit bit : bits_[index]) results.push_back(simulator_.get(bit));
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
  std::vector<NetBits> bits_;
  std::map<NetBit, std::vector<std::pair<IntegerId, int>>> places_;
  std::map<IntegerId, AffineText> values_;
  std::map<NetBits, IntegerId> plain_;  // wires without sign, by their bits
};

}  // namespace

ReadBack read_back(const IntegerGraph& graph, const std::vector<std::string>& names,
                   const Netlist& netlist) {
  return Reader(graph, names, netlist).run();
}

}  // namespace mase
