// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/netlist.h"

#include <algorithm>

#include "mase/base/text.h"

namespace mase {
namespace {

NetBits bits_of(const Value& list, const std::string& place) {
  NetBits bits;
  for (const Value& bit : list.as_list("bits")) {
    if (bit.is_int()) {
      bits.push_back(static_cast<NetBit>(bit.as_int()));
    } else {
      const std::string& text = bit.as_string("a bit");
      if (text == "0")
        bits.push_back(net_zero);
      else if (text == "1")
        bits.push_back(net_one);
      else if (text == "x" || text == "z")
        bits.push_back(net_unknown);
      else
        throw Error(place, fmt::format("a bit is '{}'", printable(text)));
    }
  }
  return bits;
}

// Parameters are binary digits, or texts.
int64_t parameter(const Value& value) {
  if (value.is_int()) return value.as_int();
  if (!value.is_string()) return 0;
  uint64_t number = 0;
  for (const char c : value.as_string()) {
    if (c != '0' && c != '1') return 0;
    number = number * 2 + static_cast<uint64_t>(c - '0');
  }
  return static_cast<int64_t>(number);
}

}  // namespace

const NetBits& NetCell::port(const std::string& name) const {
  const auto found = ports.find(name);
  static const NetBits none;
  return found == ports.end() ? none : found->second;
}

const std::vector<std::string>& results_of(const std::string& cell) {
  static const std::vector<std::string> word = {"Y", "Q"}, table = {"O"}, pair = {"O6", "O5"},
                                        chain = {"O", "CO"};
  if (starts_with(cell, "$")) return word;
  if (cell == "LUT6_2") return pair;
  return cell == "CARRY4" ? chain : table;
}

const NetCell* Netlist::driver_of(NetBit bit) const {
  const auto found = driver.find(bit);
  return found == driver.end() ? nullptr : &cells[static_cast<size_t>(found->second.first)];
}

Netlist netlist_from(const Value& json, const std::string& top, const std::string& place) {
  Netlist netlist;
  const Value& module = json["modules"][top];
  if (!module.is_dict()) throw Error(place, fmt::format("there is no module '{}'", top));
  for (const auto& [name, port] : module["ports"].as_dict("ports"))
    netlist.ports[name] = {port["direction"].as_string("direction") == "input",
                           bits_of(port["bits"], place)};
  for (const auto& [name, net] : module["netnames"].as_dict("netnames"))
    netlist.wires[name] = bits_of(net["bits"], place);
  for (const auto& [instance, entry] : module["cells"].as_dict("cells")) {
    NetCell cell;
    cell.name = instance;
    cell.type = entry["type"].as_string("type");
    for (const auto& [port, bits] : entry["connections"].as_dict("connections"))
      cell.ports[port] = bits_of(bits, place);
    for (const auto& [key, value] : entry["parameters"].as_dict("parameters"))
      cell.parameters[key] = parameter(value);
    for (const std::string& result : results_of(cell.type)) {
      const NetBits& out = cell.port(result);
      for (size_t i = 0; i < out.size(); ++i)
        if (out[i] >= 0 &&
            !netlist.driver
                 .try_emplace(out[i], static_cast<int>(netlist.cells.size()), static_cast<int>(i))
                 .second)
          throw Error(place, fmt::format("two cells drive one bit of '{}'", top));
    }
    netlist.cells.push_back(std::move(cell));
  }
  return netlist;
}

}  // namespace mase
