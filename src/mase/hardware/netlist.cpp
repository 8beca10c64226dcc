// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/netlist.h"

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
  int64_t number = 0;
  for (const char c : value.as_string()) {
    if (c != '0' && c != '1') return 0;
    number = number * 2 + (c - '0');
  }
  return number;
}

}  // namespace

const NetBits& NetCell::port(const std::string& name) const {
  const auto found = ports.find(name);
  static const NetBits none;
  return found == ports.end() ? none : found->second;
}

Netlist netlist_from(const Value& json, const std::string& top, const std::string& place) {
  Netlist netlist;
  const Value& module = json["modules"][top];
  if (!module.is_dict()) throw Error(place, fmt::format("there is no module '{}'", top));
  for (const auto& [name, net] : module["netnames"].as_dict("netnames"))
    netlist.wires[name] = bits_of(net["bits"], place);
  for (const auto& [name, entry] : module["cells"].as_dict("cells")) {
    NetCell cell;
    cell.type = entry["type"].as_string("type");
    for (const auto& [port, bits] : entry["connections"].as_dict("connections"))
      cell.ports[port] = bits_of(bits, place);
    for (const auto& [key, value] : entry["parameters"].as_dict("parameters"))
      cell.parameters[key] = parameter(value);
    const NetBits& out = cell.has("Y") ? cell.port("Y") : cell.port("Q");
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i] >= 0)
        netlist.driver[out[i]] = {static_cast<int>(netlist.cells.size()), static_cast<int>(i)};
    netlist.cells.push_back(std::move(cell));
  }
  return netlist;
}

uint64_t NetSimulator::get(NetBit bit) {
  if (bit == net_zero) return 0;
  if (bit == net_one) return ~uint64_t{0};
  if (const auto found = known_.find(bit); found != known_.end()) return found->second;
  const auto driver = netlist_.driver.find(bit);
  if (driver == netlist_.driver.end()) {
    fault = "a bit has no driver";
    return 0;
  }
  known_[bit] = 0;  // a loop ends here
  evaluate(netlist_.cells[static_cast<size_t>(driver->second.first)]);
  return known_[bit];
}

void NetSimulator::evaluate(const NetCell& cell) {
  const auto lanes = [&](const char* port) {
    std::vector<uint64_t> values;
    for (const NetBit bit : cell.port(port)) values.push_back(get(bit));
    return values;
  };
  const NetBits& out = cell.port("Y");
  std::vector<uint64_t> a = lanes("A"), b = lanes("B");
  std::vector<uint64_t> result(out.size(), 0);
  const size_t width = out.size();
  const auto parameter_of = [&](const char* name) {
    const auto found = cell.parameters.find(name);
    return found == cell.parameters.end() ? 0 : found->second;
  };
  const auto extend = [&](std::vector<uint64_t>& values, size_t size, bool is_signed) {
    const uint64_t sign = is_signed && !values.empty() ? values.back() : 0;
    while (values.size() < size) values.push_back(sign);
  };
  const bool a_signed = parameter_of("A_SIGNED") != 0, b_signed = parameter_of("B_SIGNED") != 0;
  const std::string& type = cell.type;
  if (type == "$not" || type == "$and" || type == "$or" || type == "$xor" || type == "$xnor") {
    extend(a, width, a_signed);
    extend(b, width, b_signed);
    for (size_t i = 0; i < width; ++i)
      result[i] = type == "$not"   ? ~a[i]
                  : type == "$and" ? a[i] & b[i]
                  : type == "$or"  ? a[i] | b[i]
                  : type == "$xor" ? a[i] ^ b[i]
                                   : ~(a[i] ^ b[i]);
  } else if (type == "$reduce_or" || type == "$reduce_bool" || type == "$logic_not") {
    uint64_t any = 0;
    for (const uint64_t value : a) any |= value;
    result[0] = type == "$logic_not" ? ~any : any;
  } else if (type == "$reduce_and") {
    uint64_t all = ~uint64_t{0};
    for (const uint64_t value : a) all &= value;
    result[0] = all;
  } else if (type == "$logic_and" || type == "$logic_or") {
    uint64_t any_a = 0, any_b = 0;
    for (const uint64_t value : a) any_a |= value;
    for (const uint64_t value : b) any_b |= value;
    result[0] = type == "$logic_and" ? any_a & any_b : any_a | any_b;
  } else if (type == "$mux") {
    const uint64_t choose = get(cell.port("S").at(0));
    for (size_t i = 0; i < width; ++i) result[i] = (a[i] & ~choose) | (b[i] & choose);
  } else if (type == "$add" || type == "$sub") {
    extend(a, width, a_signed && b_signed);
    extend(b, width, a_signed && b_signed);
    uint64_t carry = type == "$sub" ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < width; ++i) {
      const uint64_t y = type == "$sub" ? ~b[i] : b[i];
      result[i] = a[i] ^ y ^ carry;
      carry = (a[i] & y) | (carry & (a[i] ^ y));
    }
  } else if (type == "$lt" || type == "$gt" || type == "$le" || type == "$ge" || type == "$eq") {
    const size_t size = std::max(a.size(), b.size());
    if (a_signed || b_signed) {
      fault = "a comparison with signs";
    }
    extend(a, size, false);
    extend(b, size, false);
    uint64_t less = 0, equal = ~uint64_t{0};
    for (size_t i = size; i-- > 0;) {
      less |= equal & ~a[i] & b[i];
      equal &= ~(a[i] ^ b[i]);
    }
    result[0] = type == "$lt"   ? less
                : type == "$le" ? less | equal
                : type == "$gt" ? ~(less | equal)
                : type == "$ge" ? ~less
                                : equal;
  } else if (type == "$shiftx" || type == "$shr" || type == "$shift") {
    // A choice from constants: y = a[b].
    if (width != 1 || b_signed) {
      fault = "a variable shift";
    } else {
      for (int lane = 0; lane < 64; ++lane) {
        uint64_t index = 0;
        for (size_t k = 0; k < b.size(); ++k) index |= (b[k] >> lane & 1) << k;
        if (index < a.size()) result[0] |= (a[index] >> lane & 1) << lane;
      }
    }
  } else {
    fault = fmt::format("a cell of type {}", type);
  }
  for (size_t i = 0; i < width; ++i)
    if (out[i] >= 0) known_[out[i]] = result[i];
}

}  // namespace mase
