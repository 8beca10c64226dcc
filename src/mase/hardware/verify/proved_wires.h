// SPDX-License-Identifier: Apache-2.0
// What is known of the wires of an emitted design while it is read back: which bits they are, and
// what those that are proved to be sums add up to.
#pragma once

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "mase/hardware/verify/checked_graph.h"
#include "mase/hardware/verify/netlist.h"

namespace mase {

// Factors in units of 2^-scale: slices above a wire's lowest bits divide by powers of two.
__extension__ typedef __int128 Big;
__extension__ typedef unsigned __int128 Wide;

// A root's value, or these bits as a plain number: the same bits are the same number, whichever
// wires they stand in.
struct WireVariable {
  CheckedId node;
  NetBits bits;
  auto operator<=>(const WireVariable&) const = default;
};

struct AffineText {
  std::map<WireVariable, Big> terms;
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

class ProvedWires {
 public:
  ProvedWires(const CheckedGraph& graph, const Netlist& netlist)
      : graph_(graph), netlist_(netlist), bits_(graph.nodes.size()) {}

  int width_of(size_t index) const { return graph_.wire_width(static_cast<CheckedId>(index)); }
  void set_bits(size_t index, NetBits bits) { bits_[index] = std::move(bits); }
  const NetBits& bits(size_t index) const { return bits_[index]; }

  // Whether a node's bits add up to this, by the netlist's additions and what is known.
  enum class Sum { same, other, not_affine };
  Sum compare(size_t index, const CheckedForm& form);

  // From now on the node's bits stand for it; the second and third: it is known to be that.
  void remember(size_t index);
  void remember_form(size_t index, const CheckedForm& form);
  void remember_same(size_t index, CheckedId source);

 private:
  struct BitSum;

  AffineText value_of(CheckedId id) const;
  AffineText lowest(CheckedId id, int count) const;
  std::optional<AffineText> meaning(const NetBits& bits, int depth) const;
  int take_slice(const NetBits& bits, int at, const std::vector<std::pair<CheckedId, int>>& places,
                 AffineText& total) const;
  int take_cell(const NetBits& bits, int at, int depth, AffineText& total) const;
  void add_bits(BitSum& sum, const AffineText& text, Wide times) const;
  bool is_zero(const AffineText& difference, int width) const;

  const CheckedGraph& graph_;
  const Netlist& netlist_;
  std::vector<NetBits> bits_;
  std::map<NetBit, std::vector<std::pair<CheckedId, int>>> places_;  // in wires that are proved
  std::map<CheckedId, AffineText> values_;                           // of sums, in terms of roots
  std::map<NetBits, CheckedId> plain_;  // wires without sign, by their bits
};

}  // namespace mase
