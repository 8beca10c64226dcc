// SPDX-License-Identifier: Apache-2.0
// What the cells of a netlist compute, for bits of any kind: 64 values of each at once, or
// functions of other bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/text.h"
#include "mase/hardware/verify/decision_diagram.h"
#include "mase/hardware/verify/netlist.h"

namespace mase {

struct LaneBits {
  using Bit = uint64_t;
  static constexpr Bit never = 0, always = ~uint64_t{0};
  Bit inverse(Bit a) { return ~a; }
  Bit both(Bit a, Bit b) { return a & b; }
  Bit either(Bit a, Bit b) { return a | b; }
  Bit differ(Bit a, Bit b) { return a ^ b; }
  Bit choose(Bit when, Bit a, Bit b) { return (when & a) | (~when & b); }
};

struct DecisionBits {
  using Bit = Decision;
  static constexpr Bit never = DecisionDiagram::never, always = DecisionDiagram::always;
  DecisionDiagram& diagram;
  Bit inverse(Bit a) { return diagram.inverse(a); }
  Bit both(Bit a, Bit b) { return diagram.both(a, b); }
  Bit either(Bit a, Bit b) { return diagram.either(a, b); }
  Bit differ(Bit a, Bit b) { return diagram.differ(a, b); }
  Bit choose(Bit when, Bit a, Bit b) { return diagram.choose(when, a, b); }
};

// Bits are found from those that were set.
template <class Bits>
class NetEvaluator {
 public:
  using Bit = typename Bits::Bit;

  explicit NetEvaluator(const Netlist& netlist, Bits bits = {})
      : netlist_(netlist), bits_(std::move(bits)) {}

  void set(NetBit bit, Bit value) { known_[bit] = value; }
  void clear() { known_.clear(); }

  // An error text is left in `fault` if a cell is not known or a bit has no driver.
  Bit get(NetBit bit) {
    if (bit == net_zero) return Bits::never;
    if (bit == net_one) return Bits::always;
    if (const auto found = known_.find(bit); found != known_.end()) return found->second;
    const auto driver = netlist_.driver.find(bit);
    if (driver == netlist_.driver.end()) {
      fault = "a bit has no driver";
      return Bits::never;
    }
    known_[bit] = Bits::never;  // a loop ends here
    const NetCell& cell = netlist_.cells[static_cast<size_t>(driver->second.first)];
    if (cell.type[0] != '$') {
      evaluate_part(cell);
    } else {
      drive(cell, "Y", evaluate(cell));
    }
    return known_[bit];
  }

  std::string fault = {};

 private:
  using Word = std::vector<Bit>;

  Word word(const NetCell& cell, const char* port) {
    Word values;
    for (const NetBit bit : cell.port(port)) values.push_back(get(bit));
    return values;
  }
  static int64_t parameter(const NetCell& cell, const char* name) {
    const auto found = cell.parameters.find(name);
    return found == cell.parameters.end() ? 0 : found->second;
  }
  static void extend(Word& values, size_t size, bool is_signed) {
    const Bit sign = is_signed && !values.empty() ? values.back() : Bits::never;
    if (values.size() < size) values.resize(size, sign);
  }
  Bit any(const Word& values) {
    Bit result = Bits::never;
    for (const Bit value : values) result = bits_.either(result, value);
    return result;
  }
  Bit all(const Word& values) {
    Bit result = Bits::always;
    for (const Bit value : values) result = bits_.both(result, value);
    return result;
  }

  void drive(const NetCell& cell, const char* port, const Word& values) {
    const NetBits& out = cell.port(port);
    for (size_t i = 0; i < out.size() && i < values.size(); ++i)
      if (out[i] >= 0) known_[out[i]] = values[i];
  }

  // The entry of a table that the inputs name, the first one lowest.
  Bit entry(uint64_t table, const Word& inputs) {
    Word entries;
    for (size_t k = 0; k < size_t{1} << inputs.size(); ++k)
      entries.push_back((table >> k & 1) != 0 ? Bits::always : Bits::never);
    for (const Bit input : inputs) {
      for (size_t k = 0; 2 * k + 1 < entries.size(); ++k)
        entries[k] = bits_.choose(input, entries[2 * k + 1], entries[2 * k]);
      entries.resize(entries.size() / 2);
    }
    return entries[0];
  }

  // Cells of AMD's parts from the 7 series on, as their library guides describe them: LUT1 to LUT6
  // look INIT up by I5 to I0; LUT6_2 has in O5 the lower half by I4 to I0; CARRY4 adds as
  // O = S ^ carry, CO = S ? carry : DI; MUXF7 and MUXF8 choose I1 where S; INV turns over.
  void evaluate_part(const NetCell& cell) {
    const std::string& type = cell.type;
    const auto init = static_cast<uint64_t>(parameter(cell, "INIT"));
    const auto single = [&](const char* port) {
      const Word all = word(cell, port);
      if (all.size() != 1) fault = fmt::format("a {} without {}", type, port);
      return all.size() == 1 ? all[0] : Bits::never;
    };
    const bool pair = type == "LUT6_2";
    if (pair ||
        (type.size() == 4 && starts_with(type, "LUT") && type[3] >= '1' && type[3] <= '6')) {
      static const char* const names[] = {"I0", "I1", "I2", "I3", "I4", "I5"};
      Word inputs;
      for (int k = 0; k < type[3] - '0'; ++k) inputs.push_back(single(names[k]));
      drive(cell, pair ? "O6" : "O", {entry(init, inputs)});
      inputs.resize(std::min<size_t>(inputs.size(), 5));
      if (pair) drive(cell, "O5", {entry(init & 0xffffffff, inputs)});
    } else if (type == "CARRY4") {
      const Word s = word(cell, "S"), di = word(cell, "DI");
      // One of both is the constant 0; a one that comes in may come by either.
      Bit carry = bits_.either(single("CI"), single("CYINIT"));
      if (s.size() != 4 || di.size() != 4) fault = "a CARRY4 without four bits";
      Word sums, carries;
      for (size_t k = 0; k < std::min(s.size(), di.size()); ++k) {
        sums.push_back(bits_.differ(s[k], carry));
        carry = bits_.choose(s[k], carry, di[k]);
        carries.push_back(carry);
      }
      drive(cell, "O", sums);
      drive(cell, "CO", carries);
    } else if (type == "MUXF7" || type == "MUXF8") {
      drive(cell, "O", {bits_.choose(single("S"), single("I1"), single("I0"))});
    } else if (type == "INV") {
      drive(cell, "O", {bits_.inverse(single("I"))});
    } else {
      fault = fmt::format("a cell of type {}", type);
    }
  }

  Word bitwise(const std::string& type, const Word& a, const Word& b) {
    Word result;
    for (size_t i = 0; i < a.size(); ++i)
      result.push_back(type == "$not"   ? bits_.inverse(a[i])
                       : type == "$and" ? bits_.both(a[i], b[i])
                       : type == "$or"  ? bits_.either(a[i], b[i])
                       : type == "$xor" ? bits_.differ(a[i], b[i])
                                        : bits_.inverse(bits_.differ(a[i], b[i])));
    return result;
  }

  Word added(const Word& a, const Word& b, bool subtract) {
    Word result;
    Bit carry = subtract ? Bits::always : Bits::never;
    for (size_t i = 0; i < a.size(); ++i) {
      const Bit y = subtract ? bits_.inverse(b[i]) : b[i], one = bits_.differ(a[i], y);
      result.push_back(bits_.differ(one, carry));
      carry = bits_.choose(one, carry, y);
    }
    return result;
  }

  Bit compared(const std::string& type, const Word& a, const Word& b) {
    Bit less = Bits::never, differs = Bits::never;
    for (size_t i = 0; i < a.size(); ++i) {  // the highest that differ decide
      const Bit here = bits_.differ(a[i], b[i]);
      less = bits_.choose(here, b[i], less);
      differs = bits_.either(differs, here);
    }
    if (type == "$lt") return less;
    if (type == "$ge") return bits_.inverse(less);
    if (type == "$eq") return bits_.inverse(differs);
    if (type == "$ne") return differs;
    const Bit more = bits_.both(differs, bits_.inverse(less));
    return type == "$gt" ? more : bits_.inverse(more);
  }

  Word evaluate(const NetCell& cell) {
    const std::string& type = cell.type;
    const size_t width = cell.port("Y").size();
    Word a = word(cell, "A"), b = word(cell, "B");
    const bool a_signed = parameter(cell, "A_SIGNED") != 0,
               b_signed = parameter(cell, "B_SIGNED") != 0;
    const auto single = [&](Bit bit) {
      Word result(width, Bits::never);
      if (width > 0) result[0] = bit;
      return result;
    };
    if (type == "$not" || type == "$and" || type == "$or" || type == "$xor" || type == "$xnor") {
      extend(a, width, a_signed);
      extend(b, width, b_signed);
      a.resize(width);
      return bitwise(type, a, b);
    }
    if (type == "$reduce_or" || type == "$reduce_bool") return single(any(a));
    if (type == "$logic_not") return single(bits_.inverse(any(a)));
    if (type == "$reduce_and") return single(all(a));
    if (type == "$logic_and") return single(bits_.both(any(a), any(b)));
    if (type == "$logic_or") return single(bits_.either(any(a), any(b)));
    if (type == "$mux") {
      const Bit when = get(cell.port("S").at(0));
      Word result;
      for (size_t i = 0; i < width; ++i) result.push_back(bits_.choose(when, b[i], a[i]));
      return result;
    }
    if (type == "$add" || type == "$sub") {
      extend(a, width, a_signed && b_signed);
      extend(b, width, a_signed && b_signed);
      a.resize(width);
      return added(a, b, type == "$sub");
    }
    if (type == "$lt" || type == "$gt" || type == "$le" || type == "$ge" || type == "$eq" ||
        type == "$ne") {
      if (a_signed || b_signed) fault = "a comparison with signs";
      const size_t size = std::max(a.size(), b.size());
      extend(a, size, false);
      extend(b, size, false);
      return single(compared(type, a, b));
    }
    if (type == "$neg") {
      extend(a, width, a_signed);
      a.resize(width);
      return added(Word(width, Bits::never), a, true);
    }
    if (type == "$shift" && b_signed) return shifted(a, b, width);
    if (type == "$shiftx" || type == "$shr" || type == "$shift")
      return single(chosen(a, b, width, b_signed));
    fault = fmt::format("a cell of type {}", type);
    return single(Bits::never);
  }

  // y[i] = a[i + b], zero beside it; b has a sign.
  Word shifted(const Word& a, const Word& b, size_t width) {
    Word result(width, Bits::never);
    const auto is = [&](int64_t number) {
      Bit same = Bits::always;
      for (size_t k = 0; k < b.size(); ++k)
        same = bits_.both(
            same, (number >> std::min<size_t>(k, 63) & 1) != 0 ? b[k] : bits_.inverse(b[k]));
      return same;
    };
    for (size_t i = 0; i < width; ++i)
      for (size_t k = 0; k < a.size(); ++k)
        result[i] = bits_.either(
            result[i], bits_.both(is(static_cast<int64_t>(k) - static_cast<int64_t>(i)), a[k]));
    return result;
  }

  // A choice from constants: y = a[b].
  Bit chosen(Word a, const Word& b, size_t width, bool b_signed) {
    if (width != 1 || b_signed || b.size() > 24) {
      fault = "a variable shift";
      return Bits::never;
    }
    a.resize(std::max(a.size(), size_t{1} << b.size()), Bits::never);
    for (const Bit bit : b) {
      for (size_t i = 0; 2 * i + 1 < a.size(); ++i)
        a[i] = bits_.choose(bit, a[2 * i + 1], a[2 * i]);
      a.resize(std::max<size_t>(1, a.size() / 2));
    }
    return a[0];
  }

  const Netlist& netlist_;
  Bits bits_;
  std::map<NetBit, Bit> known_;
};

using NetSimulator = NetEvaluator<LaneBits>;

}  // namespace mase
