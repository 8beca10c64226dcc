// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/handshake.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "mase/base/text.h"
#include "mase/hardware/verify/net_evaluator.h"

namespace mase {
namespace {

constexpr size_t most_control_bits = 56;
constexpr size_t most_visited = 1 << 20;
constexpr int all_choices = 4;  // of valid before it and ready behind it

// Ports have a number behind their names in stages, none in queues.
struct Handshake {
  std::string data_in, valid_in, ready_in, data_out, valid_out, ready_out;
};
Handshake handshake_of(const Netlist& netlist) {
  const std::string number = netlist.ports.count("data_in_0") != 0 ? "_0" : "";
  const std::string in = "data_in" + number, out = "data_out" + number;
  return {in, in + "_valid", in + "_ready", out, out + "_valid", out + "_ready"};
}

// The registers that some bits depend on, and what they will be.
class Control {
 public:
  Control(const Netlist& netlist, bool with_data)
      : netlist_(netlist), names_(handshake_of(netlist)), simulator_(netlist) {
    for (const std::string& name :
         {std::string("clk"), std::string("rst"), names_.data_in, names_.valid_in, names_.ready_in,
          names_.data_out, names_.valid_out, names_.ready_out})
      if (netlist.ports.count(name) == 0) fault = fmt::format("there is no port {}", name);
    if (!fault.empty()) return;
    for (const std::string& name : {names_.ready_in, names_.valid_out}) follow(port(name));
    if (with_data) follow(port(names_.data_out));
    data_bits_ = with_data ? port(names_.data_in).size() : 0;
    if (!with_data)
      for (const NetBit bit : port(names_.data_in))
        if (seen_.count(bit) != 0) fault = "its control depends on data";
    if (registers_.size() > most_control_bits)
      fault = fmt::format("its control has {} bits", registers_.size());
  }

  std::string fault;

  const Handshake& names() const { return names_; }
  const NetBits& port(const std::string& name) const { return netlist_.ports.at(name).bits; }
  size_t data_bits() const { return data_bits_; }

  // What all control registers are behind a reset; with data, what these may be is left open.
  std::vector<uint64_t> after_reset() {
    DecisionDiagram diagram;
    NetEvaluator<DecisionBits> evaluator(netlist_, {diagram});
    int variables = 0;
    for (const auto& [q, d] : registers_) evaluator.set(q, diagram.variable(variables++));
    for (const auto& [name, one] : netlist_.ports)
      if (one.is_input)
        for (const NetBit bit : one.bits)
          evaluator.set(bit,
                        name == "rst" ? DecisionDiagram::always : diagram.variable(variables++));
    std::vector<uint64_t> states = {0};
    for (size_t k = 0; k < registers_.size(); ++k) {
      const Decision next = evaluator.get(registers_[k].second);
      const size_t known = states.size();
      for (size_t s = 0; s < known; ++s) {
        if (next == DecisionDiagram::always || next == DecisionDiagram::never) {
          states[s] |= static_cast<uint64_t>(next == DecisionDiagram::always) << k;
        } else if (data_bits_ > 0 && known < 1024) {
          states.push_back(states[s] | uint64_t{1} << k);
        } else {
          fault = "a register of its control has no value after reset";
          return {};
        }
      }
    }
    if (!evaluator.fault.empty()) fault = evaluator.fault;
    if (diagram.is_full()) fault = "its control is too wide to follow";
    return states;
  }

  // Up to 64 states at once, each with its own choice of what comes.
  struct Step {
    uint64_t next = 0, data = 0;
    bool ready = false, valid = false;
    std::vector<uint64_t> watched = {};
  };
  struct Trial {
    uint64_t state = 0;
    bool valid = false, ready = false;
    uint64_t data = 0;
  };
  std::vector<Step> step(const std::vector<Trial>& trials,
                         const std::vector<NetBits>& watched = {}) {
    simulator_.clear();
    const auto lanes = [&](const auto& bit) {
      uint64_t all = 0;
      for (size_t k = 0; k < trials.size(); ++k) all |= static_cast<uint64_t>(bit(trials[k])) << k;
      return all;
    };
    for (size_t k = 0; k < registers_.size(); ++k)
      simulator_.set(registers_[k].first,
                     lanes([&](const Trial& t) { return (t.state >> k & 1) != 0; }));
    simulator_.set(port("rst").at(0), 0);
    simulator_.set(port(names_.valid_in).at(0), lanes([](const Trial& t) { return t.valid; }));
    simulator_.set(port(names_.ready_out).at(0), lanes([](const Trial& t) { return t.ready; }));
    for (size_t k = 0; k < data_bits_; ++k)
      simulator_.set(port(names_.data_in)[k],
                     lanes([&](const Trial& t) { return (t.data >> k & 1) != 0; }));
    std::vector<Step> steps(trials.size());
    const auto put = [&](NetBit bit, const auto& keep) {
      const uint64_t all = simulator_.get(bit);
      for (size_t k = 0; k < steps.size(); ++k) keep(steps[k], all >> k & 1);
    };
    for (size_t k = 0; k < registers_.size(); ++k)
      put(registers_[k].second, [&](Step& s, uint64_t bit) { s.next |= bit << k; });
    put(port(names_.ready_in).at(0), [](Step& s, uint64_t bit) { s.ready = bit != 0; });
    put(port(names_.valid_out).at(0), [](Step& s, uint64_t bit) { s.valid = bit != 0; });
    for (size_t k = 0; k < data_bits_; ++k)
      put(port(names_.data_out).at(k), [&](Step& s, uint64_t bit) { s.data |= bit << k; });
    for (size_t w = 0; w < watched.size(); ++w) {
      for (Step& s : steps) s.watched.push_back(0);
      for (size_t k = 0; k < watched[w].size(); ++k)
        put(watched[w][k], [&](Step& s, uint64_t bit) { s.watched[w] |= bit << k; });
    }
    if (!simulator_.fault.empty()) fault = simulator_.fault;
    return steps;
  }

  void follow(const NetBits& bits) {
    std::vector<NetBit> open(bits.begin(), bits.end());
    while (!open.empty()) {
      const NetBit bit = open.back();
      open.pop_back();
      if (bit < 0 || !seen_.emplace(bit, true).second) continue;
      const auto driver = netlist_.driver.find(bit);
      if (driver == netlist_.driver.end()) continue;  // a port
      const NetCell& cell = netlist_.cells[static_cast<size_t>(driver->second.first)];
      if (cell.type == "$dff") {
        const auto polarity = cell.parameters.find("CLK_POLARITY");
        if (cell.port("CLK") != port("clk") || polarity == cell.parameters.end() ||
            polarity->second != 1)
          fault = "a register is not on the rising edge of clk";
        const NetBit next = cell.port("D").at(static_cast<size_t>(driver->second.second));
        registers_.emplace_back(bit, next);
        open.push_back(next);
        continue;
      }
      const std::vector<std::string>& results = results_of(cell.type);
      for (const auto& [name, operand] : cell.ports)
        if (std::find(results.begin(), results.end(), name) == results.end())
          open.insert(open.end(), operand.begin(), operand.end());
    }
  }

 private:
  const Netlist& netlist_;
  Handshake names_;
  NetSimulator simulator_;
  std::map<NetBit, bool> seen_;
  std::vector<std::pair<NetBit, NetBit>> registers_;  // what it is, what it will be
  size_t data_bits_ = 0;
};

// A state of the control and of what it should do.
struct StageState {
  uint64_t control = 0;
  int64_t taken = 0, pending = 0;  // operands of this row, results that are due

  auto operator<=>(const StageState&) const = default;
};

class StageExplorer {
 public:
  StageExplorer(const Netlist& netlist, const BeatSchedule& schedule)
      : control_(netlist, false), due_(schedule) {}

  ControlProof run() {
    if (!control_.fault.empty()) return {0, "", control_.fault};
    for (const uint64_t state : control_.after_reset()) visit({state, 0, 0});
    while (control_.fault.empty() && fault_.empty() && expanded_ < states_.size()) {
      if (states_.size() > most_visited)
        return {static_cast<int64_t>(states_.size()), "", "its control has too many states"};
      expand();
    }
    if (!control_.fault.empty()) return {0, "", control_.fault};
    // Results that are due leave without further operands; operands are taken while results
    // leave; and where none is due and the next operand makes none, whether they leave or not.
    if (fault_.empty()) must_move(1, false, [](const StageState& s) { return s.pending > 0; });
    if (fault_.empty()) must_move(3, true, [](const StageState&) { return true; });
    if (fault_.empty())
      must_move(2, true, [&](const StageState& s) {
        const auto at = static_cast<size_t>(s.taken);
        return s.pending == 0 && due_.due[at + 1] == due_.due[at];
      });
    return {static_cast<int64_t>(states_.size()), fault_, ""};
  }

 private:
  int visit(const StageState& state) {
    const auto [entry, fresh] = known_.try_emplace(state, static_cast<int>(states_.size()));
    if (fresh) {
      states_.push_back(state);
      next_.push_back({});
      moved_.push_back({});
    }
    return entry->second;
  }

  // Sixteen states with all that can come.
  void expand() {
    const size_t first = expanded_, last = std::min(states_.size(), first + 64 / all_choices);
    std::vector<Control::Trial> trials;
    for (size_t s = first; s < last; ++s)
      for (int choice = 0; choice < all_choices; ++choice)
        trials.push_back({states_[s].control, (choice & 2) != 0, (choice & 1) != 0});
    const std::vector<Control::Step> steps = control_.step(trials);
    for (size_t t = 0; t < trials.size() && fault_.empty(); ++t) {
      const size_t s = first + t / all_choices, choice = t % all_choices;
      const Control::Step& step = steps[t];
      const bool taken = trials[t].valid && step.ready, given = step.valid && trials[t].ready;
      StageState next = states_[s];
      next.control = step.next;
      if (step.valid && next.pending == 0) refuse(s, "offers a result that is not due");
      if (step.valid != steps[t - choice].valid) refuse(s, "offers by whether it is taken");
      if (taken) {
        const auto at = static_cast<size_t>(next.taken);
        next.pending += due_.due[at + 1] - due_.due[at];
        next.taken = (next.taken + 1) % due_.in();
      }
      next.pending -= given;
      // Some rows may wait inside; not without end.
      if (next.pending > 4 * due_.due.back() + 16) refuse(s, "owes more results than it can hold");
      next_[s][choice] = visit(next);
      moved_[s][choice] = static_cast<char>(taken + 2 * given);
      if (step.valid && !given) held_.emplace_back(s, next_[s][choice]);
    }
    for (size_t s = first; s < last; ++s) offers_.push_back(steps[(s - first) * all_choices].valid);
    expanded_ = last;
    if (expanded_ != states_.size()) return;
    for (const auto& [from, to] : held_)
      if (!offers_[static_cast<size_t>(to)] && fault_.empty())
        refuse(from, "withdraws a result before it is taken");
  }

  // With the same choice again and again something is taken (or given) in the end.
  template <class From>
  void must_move(size_t choice, bool operand, const From& from) {
    std::vector<char> colour(states_.size(), 0);  // 1: on the way, 2: moves, 3: never does
    for (size_t s = 0; s < states_.size(); ++s) {
      std::vector<size_t> way;
      size_t at = s;
      while (colour[at] == 0 && (moved_[at][choice] & (operand ? 1 : 2)) == 0) {
        colour[at] = 1;
        way.push_back(at);
        at = static_cast<size_t>(next_[at][choice]);
      }
      const char result = colour[at] == 0 ? 2 : colour[at] == 1 ? 3 : colour[at];
      colour[at] = result;
      for (const size_t passed : way) colour[passed] = result;
      if (result == 3 && from(states_[s]) && fault_.empty())
        refuse(s, operand ? "takes no operand however long it waits"
                          : "gives no result however long it waits");
    }
  }

  void refuse(size_t state, const std::string& cause) {
    if (fault_.empty())
      fault_ = fmt::format("{}: {} operands of a row taken, {} results due", cause,
                           states_[state].taken, states_[state].pending);
  }

  Control control_;
  const BeatSchedule& due_;
  std::map<StageState, int> known_;
  std::vector<StageState> states_;
  std::vector<std::array<int, all_choices>> next_;
  std::vector<std::array<char, all_choices>> moved_;
  std::vector<char> offers_;
  std::vector<std::pair<size_t, int>> held_;
  size_t expanded_ = 0;
  std::string fault_;
};

// The ports of the one memory that a queue may have.
struct QueueMemory {
  const NetCell *read = nullptr, *write = nullptr;
};

// What should wait in a queue: values, or places of its memory.
struct QueueState {
  uint64_t control = 0;
  std::vector<uint64_t> waiting = {};
  auto operator<=>(const QueueState&) const = default;
};

}  // namespace

ControlProof check_stage_control(const Netlist& netlist, const BeatSchedule& schedule) {
  return StageExplorer(netlist, schedule).run();
}

ControlProof check_queue(const Netlist& netlist, int64_t depth) {
  QueueMemory memory;
  for (const NetCell& cell : netlist.cells) {
    if (starts_with(cell.type, "$memrd")) memory.read = &cell;
    if (starts_with(cell.type, "$memwr")) memory.write = &cell;
  }
  const bool has_memory = memory.read && memory.write;
  Control control(netlist, !has_memory);
  std::vector<NetBits> watched;
  if (has_memory) {
    const Handshake& names = control.names();
    if (memory.write->port("DATA") != control.port(names.data_in) ||
        memory.read->port("DATA") != control.port(names.data_out))
      return {0, "its memory keeps something else than what comes", ""};
    watched = {
        memory.read->port("ADDR"), memory.write->port("ADDR"), {memory.write->port("EN").at(0)}};
    for (const NetBits& bits : watched) control.follow(bits);
  }
  if (!control.fault.empty()) return {0, "", control.fault};
  if (control.data_bits() > 3) return {0, "", "its beats have too many bits to try"};
  const uint64_t values = uint64_t{1} << control.data_bits();
  std::map<QueueState, bool> known;
  std::vector<QueueState> open;
  for (const uint64_t state : control.after_reset())
    if (known.try_emplace({state, {}}, true).second) open.push_back({state, {}});
  std::string fault;
  while (!open.empty() && fault.empty() && control.fault.empty()) {
    if (known.size() > most_visited)
      return {static_cast<int64_t>(known.size()), "", "it has too many states"};
    const QueueState now = std::move(open.back());
    open.pop_back();
    std::vector<Control::Trial> trials;
    for (int choice = 0; choice < all_choices; ++choice)
      for (uint64_t data = 0; data < values; ++data)
        trials.push_back({now.control, (choice & 2) != 0, (choice & 1) != 0, data});
    const std::vector<Control::Step> steps = control.step(trials, watched);
    for (size_t t = 0; t < trials.size() && fault.empty(); ++t) {
      const Control::Step& step = steps[t];
      const bool put = trials[t].valid && step.ready, taken = step.valid && trials[t].ready;
      const auto refuse = [&](const char* what) {
        fault = fmt::format("{}: {} of {} beats wait", what, now.waiting.size(), depth);
      };
      if (step.valid != !now.waiting.empty())
        refuse(step.valid ? "offers what it does not have" : "offers nothing");
      else if (step.ready != (static_cast<int64_t>(now.waiting.size()) < depth))
        refuse(step.ready ? "takes more than it has place for" : "does not take what has place");
      else if (step.valid && (has_memory ? step.watched[0] : step.data) != now.waiting[0])
        refuse("offers another beat than the first");
      else if (has_memory && (step.watched[2] != 0) != put)
        refuse("writes at another time than it takes");
      if (!fault.empty()) break;
      QueueState next{step.next, now.waiting};
      if (put) {
        const uint64_t what = has_memory ? step.watched[1] : trials[t].data;
        if (has_memory &&
            std::find(next.waiting.begin(), next.waiting.end(), what) != next.waiting.end())
          refuse("writes over a beat that waits");
        next.waiting.push_back(what);
      }
      if (taken) next.waiting.erase(next.waiting.begin());
      if (known.try_emplace(next, true).second) open.push_back(std::move(next));
    }
  }
  if (!control.fault.empty()) return {0, "", control.fault};
  return {static_cast<int64_t>(known.size()), fault, ""};
}

ControlProof check_parts(const Netlist& netlist, int64_t count) {
  Control control(netlist, false);
  if (!control.fault.empty()) return {0, "", control.fault};
  std::map<uint64_t, int64_t> known;  // control, and how many parts were shown
  std::vector<uint64_t> open;
  for (const uint64_t state : control.after_reset())
    if (known.emplace(state, 0).second) open.push_back(state);
  while (!open.empty() && control.fault.empty()) {
    const uint64_t now = open.back();
    open.pop_back();
    std::vector<Control::Trial> trials;
    for (int choice = 0; choice < all_choices; ++choice)
      trials.push_back({now, (choice & 2) != 0, (choice & 1) != 0});
    const std::vector<Control::Step> steps = control.step(trials);
    for (size_t t = 0; t < trials.size(); ++t) {
      const int64_t shown = known.at(now);
      const bool given = trials[t].valid && trials[t].ready, last = shown + 1 == count;
      if (steps[t].valid != trials[t].valid || steps[t].ready != (trials[t].ready && last))
        return {static_cast<int64_t>(known.size()),
                fmt::format("part {} of {} is not shown as it should be", shown + 1, count), ""};
      const int64_t next = given ? (last ? 0 : shown + 1) : shown;
      const auto [entry, fresh] = known.emplace(steps[t].next, next);
      if (entry->second != next)
        return {static_cast<int64_t>(known.size()), "it counts parts in two ways", ""};
      if (fresh) open.push_back(steps[t].next);
    }
  }
  if (!control.fault.empty()) return {0, "", control.fault};
  return {static_cast<int64_t>(known.size()), "", ""};
}

}  // namespace mase
