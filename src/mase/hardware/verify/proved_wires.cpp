// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/proved_wires.h"

#include <set>

namespace mase {
namespace {

constexpr int scale_bits = 62;

int take_bits(const NetBits& bits, int at, int count, AffineText& total) {
  WireVariable run{-1, NetBits(bits.begin() + at, bits.begin() + at + count)};
  Big& factor = total.terms[run];
  factor += Big{1} << (scale_bits + at);
  return count;
}

}  // namespace

// Where a bit stands in wires that are proved already.
void ProvedWires::remember(size_t index) {
  if (!graph_.nodes[index].range.is_signed())
    plain_.try_emplace(bits_[index], static_cast<CheckedId>(index));
  for (size_t k = 0; k < bits_[index].size(); ++k)
    if (bits_[index][k] >= 0)
      places_[bits_[index][k]].push_back({static_cast<CheckedId>(index), static_cast<int>(k)});
}

// The value of a proved wire in terms of roots.
AffineText ProvedWires::value_of(CheckedId id) const {
  AffineText text;
  const auto known = values_.find(id);
  if (known != values_.end()) return known->second;
  text.terms[{id, {}}] = Big{1} << scale_bits;
  return text;
}

// The value of a wire's lowest bits.
AffineText ProvedWires::lowest(CheckedId id, int count) const {
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
std::optional<AffineText> ProvedWires::meaning(const NetBits& bits, int depth) const {
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
int ProvedWires::take_slice(const NetBits& bits, int at,
                            const std::vector<std::pair<CheckedId, int>>& places,
                            AffineText& total) const {
  const int size = static_cast<int>(bits.size());
  int best = 0, best_rank = 0;
  CheckedId best_id = -1;
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

// The whole output of an adder or inverter that ends the vector.
int ProvedWires::take_cell(const NetBits& bits, int at, int depth, AffineText& total) const {
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
struct ProvedWires::BitSum {
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

void ProvedWires::add_bits(BitSum& sum, const AffineText& text, Wide times) const {
  sum.constant += static_cast<Wide>(text.constant) * times;
  for (const auto& [variable, factor] : text.terms) {
    const bool whole = variable.node >= 0;
    sum.add(whole ? bits_[static_cast<size_t>(variable.node)] : variable.bits,
            whole && graph_.at(variable.node).range.is_signed(), static_cast<Wide>(factor) * times);
  }
}

// Whether it is zero modulo 2^width. What cancels is seen in single bits, since the same bits may
// stand in several wires; the bits of a sum are replaced by what they add up to, the latest sums
// first, by the lowest bit that no wire had before.
bool ProvedWires::is_zero(const AffineText& difference, int width) const {
  const Wide mask = (Wide{1} << (scale_bits + width)) - 1;
  BitSum sum;
  add_bits(sum, difference, 1);
  const auto replaced = [&](CheckedId id) {
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
  std::set<CheckedId> sums;
  for (const auto& [bit, factor] : sum.factors)
    if (const auto place = places_.find(bit); place != places_.end())
      if (const CheckedId id = place->second.front().first; values_.count(id)) sums.insert(id);
  for (auto id = sums.rbegin(); id != sums.rend(); ++id) replaced(*id);
  return sum.known && (sum.constant & mask) == 0 &&
         std::all_of(sum.factors.begin(), sum.factors.end(),
                     [&](const auto& entry) { return (entry.second & mask) == 0; });
}

ProvedWires::Sum ProvedWires::compare(size_t index, const CheckedForm& form) {
  const std::optional<AffineText> found = meaning(bits_[index], 0);
  if (!found) return Sum::not_affine;
  AffineText difference = *found;
  for (const auto& [root, factor] : form.terms) {
    AffineText one;
    one.terms[{root, {}}] = Big{1} << scale_bits;
    difference.add(one, -Big{factor}, 0);
  }
  difference.constant -= Big{form.constant} << scale_bits;
  return is_zero(difference, width_of(index)) ? Sum::same : Sum::other;
}

void ProvedWires::remember_form(size_t index, const CheckedForm& form) {
  AffineText value;
  for (const auto& [root, factor] : form.terms) value.terms[{root, {}}] = Big{factor} << scale_bits;
  value.constant = Big{form.constant} << scale_bits;
  values_[static_cast<CheckedId>(index)] = std::move(value);
}

void ProvedWires::remember_same(size_t index, CheckedId source) {
  values_[static_cast<CheckedId>(index)] = value_of(source);
}

}  // namespace mase
