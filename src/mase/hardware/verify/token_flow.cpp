// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/token_flow.h"

#include <algorithm>
#include <map>
#include <utility>

#include "mase/base/text.h"
#include "mase/hardware/verify/net_evaluator.h"

namespace mase {
namespace {

constexpr int64_t most_beats = 1 << 26;
constexpr int most_handshakes = 1000;

int64_t bounded(const Value& value, const char* what, int64_t low, const std::string& place) {
  const int64_t number = value.as_int(what);
  if (number < low || number > most_beats)
    throw Error(place, fmt::format("{} is {}", what, number), "emit the design again (ch emit)");
  return number;
}

// Windows over a plane that is passed over position by position, padding included: a window is due
// where its last position was taken, or stepped over.
BeatSchedule window_schedule(const Value& value, const std::string& place) {
  int64_t size[2], before[2], stride[2], first[2], last[2], count[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto number = [&](const char* what, int64_t low) {
      const List& list = value[what].as_list(what);
      if (list.size() != 2) throw Error(place, fmt::format("{} has two numbers", what));
      return bounded(list[i], what, low, place);
    };
    size[i] = number("size", 1);
    before[i] = number("before", 0);
    stride[i] = number("stride", 1);
    first[i] = (number("kernel", 1) - 1) * number("dilation", 1);
    last[i] = first[i] + (number("result", 1) - 1) * stride[i];
    count[i] = std::max(before[i] + size[i], last[i] + 1);
  }
  if (count[0] > most_beats / count[1]) throw Error(place, "a plane has too many positions");
  BeatSchedule schedule{{0}};
  const auto ends = [&](int64_t at, size_t i) {
    return at >= first[i] && at <= last[i] && (at - first[i]) % stride[i] == 0;
  };
  for (int64_t y = 0; y < count[0]; ++y)
    for (int64_t x = 0; x < count[1]; ++x) {
      if (y >= before[0] && y < before[0] + size[0] && x >= before[1] && x < before[1] + size[1])
        schedule.due.push_back(schedule.due.back());
      schedule.due.back() += ends(y, 0) && ends(x, 1);
    }
  if (schedule.due[0] != 0) throw Error(place, "a window lies in the padding alone");
  return schedule;
}

BeatSchedule schedule_of(const Value& value, const std::string& place) {
  if (!value["size"].is_null()) return window_schedule(value, place);
  BeatSchedule schedule;
  schedule.due.assign(static_cast<size_t>(bounded(value["in"], "in", 1, place)) + 1, 0);
  schedule.due.back() = bounded(value["out"], "out", 1, place);
  return schedule;
}

// The game of beats: what waits in every queue, and where every stage is in its row.
class Game {
 public:
  explicit Game(const FlowClaim& flow) : flow_(flow), left_(flow.beats) {
    for (const FlowStage& stage : flow.stages) {
      states_.push_back({std::vector<Queue>(stage.sources.size())});
      for (size_t i = 0; i < stage.sources.size(); ++i)
        behind_[stage.sources[i].from].push_back({states_.size() - 1, i});
    }
  }

  std::string fault() {
    bool moved = true;
    while (moved) {
      moved = false;
      if (left_ > 0 && has_place(-1)) {
        put(-1);
        --left_;
        moved = true;
      }
      for (size_t k = 0; k < states_.size(); ++k) moved = play(k) || moved;
    }
    if (left_ > 0) return fmt::format("it stops with {} beats of a row still to come", left_);
    for (size_t k = 0; k < states_.size(); ++k) {
      const bool waits = std::any_of(
          states_[k].queues.begin(), states_[k].queues.end(),
          [](const Queue& queue) { return queue.whole + queue.parts + queue.shown != 0; });
      if (waits || states_[k].taken != 0 || states_[k].pending != 0)
        return fmt::format("{} stops within a row: {} beats taken, {} due",
                           printable(flow_.stages[k].module), states_[k].taken, states_[k].pending);
    }
    return "";
  }

 private:
  struct Queue {
    int64_t whole = 0, shown = 0, parts = 0;  // beats; parts shown of the first; parts that wait
  };
  struct State {
    std::vector<Queue> queues;
    int64_t taken = 0, pending = 0;
  };

  bool has_place(int source) const {
    const auto readers = behind_.find(source);
    return readers == behind_.end() ||
           std::all_of(readers->second.begin(), readers->second.end(), [&](const auto& reader) {
             return states_[reader.first].queues[reader.second].whole <
                    flow_.stages[reader.first].sources[reader.second].depth;
           });
  }
  void put(int source) {
    const auto readers = behind_.find(source);
    if (readers == behind_.end()) return;
    for (const auto& [k, i] : readers->second) ++states_[k].queues[i].whole;
  }

  bool play(size_t k) {
    const FlowStage& stage = flow_.stages[k];
    State& state = states_[k];
    bool moved = false;
    for (size_t i = 0; i < state.queues.size(); ++i) {
      Queue& queue = state.queues[i];
      if (stage.sources[i].parts == 1 || queue.whole == 0 || queue.parts == 2) continue;
      ++queue.parts;
      if (++queue.shown == stage.sources[i].parts) {
        queue.shown = 0;
        --queue.whole;
      }
      moved = true;
    }
    const bool place = has_place(static_cast<int>(k));
    if (state.pending > 0) {
      if (!place) return moved;
      --state.pending;
      put(static_cast<int>(k));
      return true;
    }
    const auto at = static_cast<size_t>(state.taken);
    const int64_t more = stage.schedule.due[at + 1] - stage.schedule.due[at];
    if (more > 0 && !place) return moved;
    for (size_t i = 0; i < state.queues.size(); ++i)
      if ((stage.sources[i].parts == 1 ? state.queues[i].whole : state.queues[i].parts) == 0)
        return moved;
    for (size_t i = 0; i < state.queues.size(); ++i)
      --(stage.sources[i].parts == 1 ? state.queues[i].whole : state.queues[i].parts);
    state.pending += more;
    state.taken = (state.taken + 1) % stage.schedule.in();
    return true;
  }

  const FlowClaim& flow_;
  int64_t left_;
  std::vector<State> states_;
  std::map<int, std::vector<std::pair<size_t, size_t>>> behind_;
};

// Bits of the top module's instances, by their names.
class Wiring {
 public:
  Wiring(const FlowClaim& flow, const Netlist& top) : flow_(flow), top_(top) {
    for (const NetCell& cell : top.cells) instances_[cell.name] = &cell;
  }

  std::string fault() {
    for (size_t k = 0; k < flow_.stages.size() && fault_.empty(); ++k) check_stage(k);
    if (!fault_.empty()) return fault_;
    std::map<int, std::vector<std::string>> queues;
    for (const FlowStage& stage : flow_.stages)
      for (size_t i = 0; i < stage.sources.size(); ++i)
        queues[stage.sources[i].from].push_back(queue_name(stage, i));
    for (const auto& [source, names] : queues) {
      std::vector<NetBits> all;
      for (const std::string& name : names) all.push_back(bits(name, "data_in_ready"));
      // Every reader takes it, or none.
      is_all_of(given(source, "_ready"), all, fmt::format("ready of source {}", source));
      for (size_t r = 0; r < names.size(); ++r) {
        std::vector<NetBits> needed = all;
        needed[r] = given(source, "_valid");
        is_all_of(bits(names[r], "data_in_valid"), needed, names[r]);
      }
    }
    const int last = static_cast<int>(flow_.stages.size()) - 1;
    same(port("data_out_0"), given(last, ""), "data_out_0");
    same(port("data_out_0_valid"), given(last, "_valid"), "data_out_0_valid");
    same(given(last, "_ready"), port("data_out_0_ready"), "data_out_0_ready");
    return fault_;
  }

 private:
  static std::string queue_name(const FlowStage& stage, size_t i) {
    return stage.module + "_buffer" + (stage.sources.size() > 1 ? fmt::format("_{}", i) : "");
  }
  NetBits port(const std::string& name) {
    const auto found = top_.ports.find(name);
    if (found == top_.ports.end()) {
      refuse(fmt::format("there is no port {}", name));
      return {};
    }
    return found->second.bits;
  }
  NetBits bits(const std::string& instance, const std::string& name) {
    const auto found = instances_.find(instance);
    if (found == instances_.end() || found->second->port(name).empty()) {
      refuse(fmt::format("there is no {} of {}", name, printable(instance)));
      return {};
    }
    return found->second->port(name);
  }
  // What a stage or the inputs give.
  NetBits given(int source, const std::string& what) {
    if (source < 0) return port("data_in_0" + what);
    return bits(flow_.stages[static_cast<size_t>(source)].module + "_inst", "data_out_0" + what);
  }
  void refuse(const std::string& cause) {
    if (fault_.empty()) fault_ = cause;
  }
  void same(const NetBits& a, const NetBits& b, const std::string& what) {
    if (a != b || a.empty()) refuse(fmt::format("{} is connected to something else", what));
  }

  // Bits that are no function of others, as they are.
  Decision value(NetBit bit) {
    NetEvaluator<DecisionBits> evaluator(top_, {diagram_});
    const auto set = [&](const NetBits& bits) {
      if (bits.size() == 1 && bits[0] >= 0) evaluator.set(bits[0], variable(bits[0]));
    };
    for (const auto& [name, one] : top_.ports)
      if (one.is_input) set(one.bits);
    // What instances say of themselves: that they offer, and that they can take.
    for (const auto& [name, cell] : instances_)
      for (const char* number : {"", "_0"}) {
        set(cell->port(fmt::format("data_out{}_valid", number)));
        set(cell->port(fmt::format("data_in{}_ready", number)));
      }
    const Decision result = evaluator.get(bit);
    if (!evaluator.fault.empty()) refuse(evaluator.fault);
    return result;
  }
  Decision variable(NetBit bit) {
    const auto [entry, fresh] = variables_.try_emplace(bit, static_cast<int>(variables_.size()));
    if (entry->second >= most_handshakes) refuse("it has too many handshakes to follow");
    return diagram_.variable(std::min(entry->second, most_handshakes));
  }

  void is_all_of(const NetBits& bit, const std::vector<NetBits>& parts, const std::string& what) {
    if (!fault_.empty() || bit.size() != 1) return refuse(what + " is not one bit");
    Decision wanted = DecisionDiagram::always;
    for (const NetBits& part : parts) {
      if (part.size() != 1) return refuse(what + " waits for something else");
      wanted = diagram_.both(wanted, variable(part[0]));
    }
    if (value(bit[0]) != wanted) refuse(fmt::format("{} waits for something else", what));
  }

  void check_stage(size_t k) {
    const FlowStage& stage = flow_.stages[k];
    const std::string inst = stage.module + "_inst";
    std::vector<std::string> ends;
    for (size_t i = 0; i < stage.sources.size(); ++i) {
      const FlowEdge& edge = stage.sources[i];
      const std::string queue = queue_name(stage, i);
      const NetBits all = given(edge.from, "");
      if (edge.first_bit + edge.bits > static_cast<int64_t>(all.size()))
        return refuse(queue + " reads more than there is");
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(edge.first_bit);
      same(bits(queue, "data_in"), {first, first + static_cast<std::ptrdiff_t>(edge.bits)}, queue);
      std::string end = queue;
      for (const char* next : {"_elements", "_part"}) {
        if (edge.parts == 1) continue;
        const std::string behind = stage.module + next;
        for (const char* what : {"", "_valid"})
          same(bits(behind, std::string("data_in") + what),
               bits(end, std::string("data_out") + what), behind);
        same(bits(end, "data_out_ready"), bits(behind, "data_in_ready"), behind);
        end = behind;
      }
      ends.push_back(end);
    }
    const NetBits taken = bits(inst, "data_in_0_ready");
    std::vector<NetBits> valid;
    NetBits data;
    for (size_t i = 0; i < ends.size(); ++i) {
      valid.push_back(bits(ends[i], "data_out_valid"));
      std::vector<NetBits> needed = {taken};
      for (size_t j = 0; j < ends.size(); ++j)
        if (j != i) needed.push_back(bits(ends[j], "data_out_valid"));
      is_all_of(bits(ends[i], "data_out_ready"), needed, ends[i]);
      // Elements as wide as the stage takes them.
      const NetBits own = bits(ends[i], "data_out");
      const auto width = static_cast<size_t>(stage.sources[i].element_bits);
      for (size_t at = 0; at + width <= own.size(); at += width)
        for (size_t b = 0; b < static_cast<size_t>(stage.element_bits); ++b)
          data.push_back(b < width                    ? own[at + b]
                         : stage.sources[i].is_signed ? own[at + width - 1]
                                                      : net_zero);
    }
    is_all_of(bits(inst, "data_in_0_valid"), valid, inst);
    same(bits(inst, "data_in_0"), data, inst);
    for (const auto& [name, cell] : instances_)
      if (starts_with(name, stage.module + "_"))
        for (const char* clock : {"clk", "rst"}) same(cell->port(clock), port(clock), name);
  }

  const FlowClaim& flow_;
  const Netlist& top_;
  std::map<std::string, const NetCell*> instances_;
  DecisionDiagram diagram_;
  std::map<NetBit, int> variables_;
  std::string fault_;
};

}  // namespace

FlowClaim flow_claim(const Value& value, const std::string& place) {
  FlowClaim flow;
  flow.top = value["top"].as_string("top");
  flow.beats = bounded(value["beats"], "beats", 1, place);
  for (const Value& one : value["stages"].as_list("stages")) {
    FlowStage stage;
    stage.module = one["module"].as_string("module");
    stage.element_bits = bounded(one["element_bits"], "element_bits", 1, place);
    stage.schedule = schedule_of(one["schedule"], place);
    for (const Value& from : one["sources"].as_list("sources")) {
      FlowEdge edge;
      const int64_t source = from["from"].as_int("from");
      if (source < -1 || source >= static_cast<int64_t>(flow.stages.size()))
        throw Error(place, "a stage reads what does not stand before it");
      edge.from = static_cast<int>(source);
      edge.depth = bounded(from["depth"], "depth", 1, place);
      edge.parts = bounded(from["parts"], "parts", 1, place);
      edge.first_bit = bounded(from["first_bit"], "first_bit", 0, place);
      edge.bits = bounded(from["bits"], "bits", 1, place);
      edge.element_bits = bounded(from["element_bits"], "element_bits", 1, place);
      edge.is_signed = from["signed"].as_bool("signed");
      stage.sources.push_back(edge);
    }
    if (stage.sources.empty() || stage.sources.size() > 2)
      throw Error(place, "a stage has one source or two");
    flow.stages.push_back(std::move(stage));
  }
  if (flow.stages.empty()) throw Error(place, "a stream has no stages");
  return flow;
}

std::string flow_fault(const FlowClaim& flow) { return Game(flow).fault(); }

std::string wiring_fault(const FlowClaim& flow, const Netlist& top) {
  return Wiring(flow, top).fault();
}

}  // namespace mase
