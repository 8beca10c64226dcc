// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/net_ports.h"

#include <algorithm>
#include <map>
#include <optional>

#include "mase/base/text.h"

namespace mase::net_ports {
namespace {

constexpr int any_cycle = -1;  // of constants
constexpr int not_yet = -2;    // on the way

class Ports {
 public:
  Ports(const ModuleClaim& claim, const Netlist& netlist)
      : claim_(claim), graph_(claim.graph), names_(claim.signals), netlist_(netlist) {}

  std::string fault() {
    fault_ = wrong_ports();
    if (fault_.empty()) fault_ = wrong_slices("in_data", graph_.inputs);
    if (fault_.empty()) fault_ = wrong_slices("out_data", graph_.outputs);
    if (fault_.empty()) check_cycles();
    if (fault_.empty() && claim_.valid) fault_ = wrong_valid();
    return fault_;
  }

 private:
  const NetBits& bits(const std::string& port) const { return netlist_.ports.at(port).bits; }

  int bits_of(const std::vector<CheckedId>& ids) const {
    int bits = 0;
    for (const CheckedId id : ids) bits += graph_.wire_width(id);
    return bits;
  }

  std::string wrong_ports() const {
    std::map<std::string, std::pair<bool, int>> wanted = {
        {"in_data", {true, bits_of(graph_.inputs)}},
        {"out_data", {false, bits_of(graph_.outputs)}}};
    if (claim_.latency > 0) wanted["clk"] = {true, 1};
    if (claim_.valid) {
      wanted["rst"] = wanted["in_valid"] = {true, 1};
      wanted["out_valid"] = {false, 1};
    }
    for (const auto& [name, port] : netlist_.ports)
      if (!wanted.count(name)) return fmt::format("there is a port {}", printable(name));
    for (const auto& [name, form] : wanted) {
      const auto port = netlist_.ports.find(name);
      if (port == netlist_.ports.end()) return fmt::format("there is no port {}", name);
      if (port->second.is_input != form.first)
        return fmt::format("port {} has the other direction", name);
      if (port->second.bits.size() != static_cast<size_t>(form.second))
        return fmt::format("port {} has {} bits, not {}", name, port->second.bits.size(),
                           form.second);
      if (!form.first) continue;
      for (const NetBit bit : port->second.bits)
        if (bit < 0 || netlist_.driver.count(bit))
          return fmt::format("something drives the input {}", name);
    }
    return "";
  }

  // Codes side by side, the first one lowest.
  std::string wrong_slices(const std::string& port, const std::vector<CheckedId>& ids) const {
    const NetBits& all = bits(port);
    size_t at = 0;
    for (size_t k = 0; k < ids.size(); ++k) {
      const std::string& name = names_[static_cast<size_t>(ids[k])];
      const auto wire = netlist_.wires.find(name);
      const auto width = static_cast<size_t>(graph_.wire_width(ids[k]));
      if (wire == netlist_.wires.end() || wire->second.size() != width)
        return fmt::format("{}: no wire of {} bits", name, width);
      if (at + width > all.size() || !std::equal(wire->second.begin(), wire->second.end(),
                                                 all.begin() + static_cast<std::ptrdiff_t>(at)))
        return fmt::format("{}[{}:{}] is not {}", port, at + width - 1, at, name);
      at += width;
    }
    return at == all.size() ? "" : fmt::format("{} has bits that are nobody's", port);
  }

  bool on_our_clock(const NetCell& cell) const {
    const auto polarity = cell.parameters.find("CLK_POLARITY");
    return claim_.latency > 0 && cell.port("CLK") == bits("clk") &&
           polarity != cell.parameters.end() && polarity->second == 1;
  }

  // Cycles since the inputs that a bit depends on came in; each operand of a cell has the same.
  int cycle_of(NetBit bit) {
    if (bit < 0) return any_cycle;
    if (const auto known = cycles_.find(bit); known != cycles_.end())
      return known->second == not_yet ? fail("a value depends on itself") : known->second;
    const auto driver = netlist_.driver.find(bit);
    if (driver == netlist_.driver.end()) return fail("a bit has no driver");
    const NetCell& cell = netlist_.cells[static_cast<size_t>(driver->second.first)];
    if (cell.type == "$dff") {
      if (!on_our_clock(cell)) return fail("a register is not on the rising edge of clk");
      cycles_[bit] = not_yet;
      const int before = cycle_of(cell.port("D").at(static_cast<size_t>(driver->second.second)));
      return cycles_[bit] = before == any_cycle ? any_cycle : before + 1;
    }
    const std::vector<std::string>& results = results_of(cell.type);
    const auto is_result = [&](const std::string& name) {
      return std::find(results.begin(), results.end(), name) != results.end();
    };
    for (const std::string& result : results)
      for (const NetBit one : cell.port(result)) cycles_[one] = not_yet;
    int cycle = any_cycle;
    for (const auto& [name, operand] : cell.ports) {
      if (is_result(name)) continue;
      for (const NetBit one : operand) {
        const int own = cycle_of(one);
        if (own == any_cycle) continue;
        if (cycle != any_cycle && own != cycle)
          return fail(
              fmt::format("a {} reads values of two clock cycles, {} and {} after the input",
                          cell.type, std::min(own, cycle), std::max(own, cycle)));
        cycle = own;
      }
    }
    for (const std::string& result : results)
      for (const NetBit one : cell.port(result)) cycles_[one] = cycle;
    return cycle;
  }

  int fail(const std::string& fault) {
    if (fault_.empty()) fault_ = fault;
    return any_cycle;
  }

  void check_cycles() {
    for (const NetBit bit : bits("in_data")) cycles_[bit] = 0;
    const NetBits& out = bits("out_data");
    for (size_t k = 0; k < out.size() && fault_.empty(); ++k)
      if (const int cycle = cycle_of(out[k]);
          cycle != any_cycle && cycle != claim_.latency && fault_.empty())
        fault_ = fmt::format("out_data[{}] is {} clock cycles after the input, not {}", k, cycle,
                             claim_.latency);
  }

  std::optional<const NetCell*> driver_of(NetBit bit, const char* type) const {
    const auto driver = netlist_.driver.find(bit);
    if (driver == netlist_.driver.end()) return {};
    const NetCell& cell = netlist_.cells[static_cast<size_t>(driver->second.first)];
    if (cell.type != type) return {};
    return &cell;
  }
  size_t place_of(NetBit bit) const { return static_cast<size_t>(netlist_.driver.at(bit).second); }

  // register(rst ? 0 : register(rst ? 0 : ... in_valid)), one for each clock cycle.
  std::string wrong_valid() const {
    NetBit bit = bits("out_valid").at(0);
    for (int cycle = 0; cycle < claim_.latency; ++cycle) {
      const auto stage = driver_of(bit, "$dff");
      if (!stage || !on_our_clock(**stage))
        return fmt::format("out_valid has {} registers, not {}", cycle, claim_.latency);
      const NetBit next = (*stage)->port("D").at(place_of(bit));
      const auto choice = driver_of(next, "$mux");
      if (!choice || (*choice)->port("S") != bits("rst") ||
          (*choice)->port("B").at(place_of(next)) != net_zero)
        return "rst does not clear a register of out_valid";
      bit = (*choice)->port("A").at(place_of(next));
    }
    return bit == bits("in_valid").at(0)
               ? ""
               : fmt::format("out_valid is not in_valid {} clock cycles later", claim_.latency);
  }

  const ModuleClaim& claim_;
  const CheckedGraph& graph_;
  const std::vector<std::string>& names_;
  const Netlist& netlist_;
  std::map<NetBit, int> cycles_;
  std::string fault_;
};

}  // namespace
}  // namespace mase::net_ports

namespace mase {

std::string port_fault(const ModuleClaim& claim, const Netlist& netlist) {
  return net_ports::Ports(claim, netlist).fault();
}

}  // namespace mase
