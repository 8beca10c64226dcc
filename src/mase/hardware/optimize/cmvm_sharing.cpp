// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/optimize/cmvm_sharing.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "mase/hardware/graph/linear_form.h"

namespace mase {
namespace {

uint64_t moved(uint64_t bits, int distance) {  // bit s+distance goes to bit s
  if (distance >= 64 || distance <= -64) return 0;
  return distance >= 0 ? bits >> distance : bits << -distance;
}

// What all factors of a form have in common: a power of two, and the sign of the first one.
struct FormUnit {
  int shift = 0;
  bool negative = false;

  int64_t in(int64_t factor) const {
    const int64_t rest = factor >> shift;
    return negative ? -rest : rest;
  }
};

FormUnit unit_of(const LinearForm& form) {
  int64_t all = 0;
  for (const auto& [input, factor] : form.terms) all |= factor;
  return {std::countr_zero(static_cast<uint64_t>(all)), form.terms[0].second < 0};
}

uint64_t form_hash(const LinearForm& form, const FormUnit& unit) {
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (const auto& [input, factor] : form.terms) {
    hash ^= static_cast<uint64_t>(unit.in(factor)) + (static_cast<uint64_t>(input) << 40) +
            (hash << 6) + (hash >> 2);
    hash *= 0xFF51AFD7ED558CCDu;
  }
  return hash;
}

bool same_form(const LinearForm& a, const FormUnit& unit_a, const LinearForm& b,
               const FormUnit& unit_b) {
  return std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(),
                    [&](const auto& x, const auto& y) {
                      return x.first == y.first && unit_a.in(x.second) == unit_b.in(y.second);
                    });
}

}  // namespace

// How often each pair of terms occurs in the columns, and which is worth most.
class PairTable {
 public:
  PairTable(CmvmSharing& sharing, const std::vector<CmvmColumn>& columns,
            const SharingOptions& options, Random& random)
      : sharing_(sharing), options_(options), random_(random), columns_(columns.size()) {
    for (size_t c = 0; c < columns.size(); ++c)
      for (const CmvmTerm& term : columns[c]) insert_quietly(c, term);
    rehash(1 << 8);  // many products are small
    for (size_t c = 0; c < columns_.size(); ++c) {
      const auto& present = columns_[c].present;
      for (size_t x = 0; x < present.size(); ++x)
        for (size_t y = x; y < present.size(); ++y)
          count_nodes(c, std::min(present[x], present[y]), std::max(present[x], present[y]));
    }
    // In an order of their own, not that of the hash table.
    for (const Slot& slot : slots_)
      if (slot.count >= 2) touched_.push_back(slot.key);
    std::sort(touched_.begin(), touched_.end());
    push_touched();
  }

  // Replaces the best pair everywhere; false when no pair occurs twice.
  bool step() {
    while (highest_ > 0) {
      std::vector<int>& waiting = waiting_[highest_ - 1];
      if (waiting.empty()) {
        --highest_;
        continue;
      }
      Counted& counted = pairs_[static_cast<size_t>(waiting.back())];
      const int index = waiting.back();
      waiting.pop_back();
      if (counted.place != highest_) continue;  // it waits higher up, or did
      counted.place = 0;
      const int count = slot_of(counted.key).count;
      if (count < 2) continue;
      if (const size_t place = place_in_line(counted, count); place < highest_) {
        line_up(index, place);  // its count fell since
        continue;
      }
      if (replace(pair_of(counted.key))) return true;
    }
    return false;
  }

  std::vector<CmvmColumn> rest() const {
    std::vector<CmvmColumn> columns(columns_.size());
    for (size_t c = 0; c < columns_.size(); ++c)
      for (const int node : columns_[c].present) {
        const DigitSet& set = columns_[c].digits[static_cast<size_t>(node)];
        for (uint64_t bits = set.all(); bits; bits &= bits - 1) {
          const int shift = std::countr_zero(bits);
          columns[c].push_back({node, shift, (set.minus >> shift & 1) != 0});
        }
      }
    return columns;
  }

 private:
  // Digits of one node in one column, by shift.
  struct DigitSet {
    uint64_t plus = 0, minus = 0;
    uint64_t all() const { return plus | minus; }
  };
  struct Column {
    std::vector<DigitSet> digits;  // by node
    std::vector<int> present;      // nodes with digits
  };
  // A pair that occurred twice: what its score needs.
  struct Counted {
    uint64_t key;
    int bits;           // of the adder
    double factor = 1;  // the restart's disturbance
    size_t place = 0;   // where it waits; 0: nowhere
  };
  // How often each pair occurs. Most occur once, and have nothing but this.
  struct Slot {
    uint64_t key;  // 0: empty
    int count;
    int pair;  // index into pairs_, or -1
  };
  // Pairs wait by their score, in steps of an eighth of a bit: a heap would spend its time on those
  // whose count has changed.
  size_t place_in_line(const Counted& counted, int count) const {
    const double score =
        ((count - 1) * (counted.bits + 0.25) + options_.term_weight * count) * counted.factor;
    return 1 + static_cast<size_t>(8 * score);
  }
  void line_up(int index, size_t place) {
    if (waiting_.size() < place) waiting_.resize(place + place / 2);
    waiting_[place - 1].push_back(index);
    pairs_[static_cast<size_t>(index)].place = place;
    highest_ = std::max(highest_, place);
  }

  // Pairs that occur more often than before, each once.
  void push_touched() {
    for (const uint64_t key : touched_) {
      Slot& slot = slot_of(key);
      if (slot.count < 2) continue;
      if (slot.pair < 0) {
        slot.pair = static_cast<int>(pairs_.size());
        pairs_.push_back({key, sharing_.cost_of(pair_of(key)),
                          options_.noise > 0 ? 1 + options_.noise * random_.uniform(-1, 1) : 1});
      }
      const Counted& counted = pairs_[static_cast<size_t>(slot.pair)];
      if (const size_t place = place_in_line(counted, slot.count); place > counted.place)
        line_up(slot.pair, place);
    }
    touched_.clear();
  }

  DigitSet& set_of(size_t column, int node) {
    auto& digits = columns_[column].digits;
    if (digits.size() <= static_cast<size_t>(node)) digits.resize(static_cast<size_t>(node) + 16);
    return digits[static_cast<size_t>(node)];
  }

  void insert_quietly(size_t column, const CmvmTerm& term) {
    DigitSet& set = set_of(column, term.node);
    if (set.all() == 0) columns_[column].present.push_back(term.node);
    const uint64_t bit = uint64_t{1} << term.shift;
    MASE_CHECK((set.all() & bit) == 0, "two digits in one place");
    (term.negative ? set.minus : set.plus) |= bit;
  }

  // -- counts by pair, in an open hash table ---------------------------------------------------
  static uint64_t key_of(int first, int second, int distance, bool opposite) {
    return static_cast<uint64_t>(first) << 36 | static_cast<uint64_t>(second) << 12 |
           static_cast<uint64_t>(distance + 1024) << 1 | static_cast<uint64_t>(opposite);
  }
  static CmvmSharing::Pair pair_of(uint64_t key) {
    return {static_cast<int>(key >> 36), static_cast<int>(key >> 12 & 0xFFFFFF),
            static_cast<int>(key >> 1 & 0x7FF) - 1024, (key & 1) != 0};
  }
  size_t place_of(uint64_t key) const {
    key *= 0x9E3779B97F4A7C15u;
    return (key ^ key >> 29) & (slots_.size() - 1);
  }
  void rehash(size_t size) {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(size, {0, 0, -1});
    for (const Slot& slot : old)
      if (slot.key != 0) slots_[free_or(slot.key)] = slot;
  }
  // Where the pair is, or would be.
  size_t free_or(uint64_t key) const {
    size_t at = place_of(key);
    while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  Slot& slot_of(uint64_t key) {
    Slot& slot = slots_[free_or(key)];
    if (slot.key != 0) return slot;
    slot = {key, 0, -1};
    if (++used_ * 2 <= slots_.size()) return slot;
    rehash(slots_.size() * 2);
    return slots_[free_or(key)];
  }
  // All pairs between the digits of two nodes of a column, once.
  void count_nodes(size_t column, int first, int second) {
    const DigitSet a = set_of(column, first), b = set_of(column, second);
    for (uint64_t x = a.all(); x; x &= x - 1) {
      const int shift = std::countr_zero(x);
      const bool minus = (a.minus >> shift & 1) != 0;
      uint64_t y = b.all();
      if (first == second) y &= shift >= 63 ? 0 : ~uint64_t{0} << (shift + 1);
      for (; y; y &= y - 1) {
        const int other = std::countr_zero(y);
        ++slot_of(key_of(first, second, other - shift, minus != ((b.minus >> other & 1) != 0)))
              .count;
      }
    }
  }
  // One term against all others of its column. Counts lie anywhere in memory: all are asked for
  // before the first is changed.
  void count_term(size_t column, const CmvmTerm& term, int amount) {
    keys_.clear();
    for (const int node : columns_[column].present) {
      const DigitSet& set = columns_[column].digits[static_cast<size_t>(node)];
      const bool before = node < term.node;
      for (uint64_t bits = set.all(); bits; bits &= bits - 1) {
        const int shift = std::countr_zero(bits);
        if (node == term.node && shift == term.shift) continue;
        const bool first = before || (node == term.node && shift < term.shift);
        const bool opposite = ((set.minus >> shift & 1) != 0) != term.negative;
        keys_.push_back(first ? key_of(node, term.node, term.shift - shift, opposite)
                              : key_of(term.node, node, shift - term.shift, opposite));
        __builtin_prefetch(&slots_[place_of(keys_.back())]);
      }
    }
    for (const uint64_t key : keys_) {
      if (amount < 0) {
        Slot& slot = slots_[free_or(key)];
        if (slot.key != 0) --slot.count;
      } else if (++slot_of(key).count >= 2) {
        touched_.push_back(key);
      }
    }
  }
  void remove(size_t column, const CmvmTerm& term) {
    count_term(column, term, -1);
    DigitSet& set = set_of(column, term.node);
    const uint64_t bit = uint64_t{1} << term.shift;
    set.plus &= ~bit;
    set.minus &= ~bit;
    if (set.all() == 0) std::erase(columns_[column].present, term.node);
  }
  // A new term may meet one of its own kind: equal ones make one at the next shift, opposite ones
  // nothing.
  void insert(size_t column, CmvmTerm term) {
    while (true) {
      MASE_CHECK(term.shift < 63, "a shift of {}", term.shift);
      const DigitSet& set = set_of(column, term.node);
      const uint64_t bit = uint64_t{1} << term.shift;
      if ((set.all() & bit) == 0) break;
      const bool minus = (set.minus & bit) != 0;
      remove(column, {term.node, term.shift, minus});
      if (minus != term.negative) return;
      ++term.shift;
    }
    count_term(column, term, 1);
    insert_quietly(column, term);
  }

  // The places of a pair in a column, as shifts of its first node; none overlaps another.
  uint64_t places(size_t column, const CmvmSharing::Pair& pair) {
    const DigitSet a = set_of(column, pair.first), b = set_of(column, pair.second);
    const uint64_t plus = moved(b.plus, pair.distance), minus = moved(b.minus, pair.distance);
    uint64_t found =
        pair.opposite ? (a.plus & minus) | (a.minus & plus) : (a.plus & plus) | (a.minus & minus);
    if (pair.first != pair.second) return found;
    uint64_t chosen = 0, used = 0;
    for (; found; found &= found - 1) {
      const uint64_t bit = found & (~found + 1);
      const uint64_t both = bit | bit << pair.distance;
      if (used & both) continue;
      used |= both;
      chosen |= bit;
    }
    return chosen;
  }

  bool replace(const CmvmSharing::Pair pair) {
    std::vector<std::pair<size_t, uint64_t>> found;
    int total = 0;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const auto& digits = columns_[c].digits;
      if (digits.size() <= static_cast<size_t>(pair.second)) continue;
      if (const uint64_t bits = places(c, pair); bits) {
        found.emplace_back(c, bits);
        total += std::popcount(bits);
      }
    }
    if (total < 2) return false;
    const CmvmTerm sum =
        sharing_.add_node({pair.first, std::max(0, -pair.distance), false},
                          {pair.second, std::max(0, pair.distance), pair.opposite});
    for (const auto& [column, bits] : found)
      for (uint64_t rest = bits; rest; rest &= rest - 1) {
        const int shift = std::countr_zero(rest);
        const DigitSet& set = set_of(column, pair.first);
        const uint64_t other = uint64_t{1} << (shift + pair.distance);
        const DigitSet& second = set_of(column, pair.second);
        // An earlier place of this column may have used it up through a carry.
        if ((set.all() >> shift & 1) == 0 || (second.all() & other) == 0) continue;
        const bool minus = (set.minus >> shift & 1) != 0;
        const bool second_minus = (second.minus & other) != 0;
        if ((minus != second_minus) != pair.opposite) continue;
        remove(column, {pair.first, shift, minus});
        remove(column, {pair.second, shift + pair.distance, second_minus});
        if (sum.node >= 0)
          insert(column, {sum.node, std::min(shift, shift + pair.distance) + sum.shift,
                          minus != sum.negative});
      }
    push_touched();
    return true;
  }

  CmvmSharing& sharing_;
  const SharingOptions& options_;
  Random& random_;
  std::vector<Column> columns_;
  std::vector<Counted> pairs_;
  std::vector<Slot> slots_;
  size_t used_ = 0;  // slots
  std::vector<uint64_t> touched_, keys_;
  std::vector<std::vector<int>> waiting_;  // pairs by place, the last one first
  size_t highest_ = 0;                     // no pair waits above
};

CmvmColumn signed_digits(int64_t value, int node, Random* random) {
  CmvmColumn digits;
  for (int shift = 0; value != 0; ++shift) {
    if (value & 1) {
      // With two lowest ones the next digit is carried: -1 now. Another writing keeps the ones.
      bool minus = (value & 3) == 3;
      if (random && (value & 7) == 3 && random->below(4) == 0) minus = false;  // 2 + 1 for 4 - 1
      if (random && (value & 7) == 5 && random->below(4) == 0) minus = true;  // 8 - 2 - 1 for 4 + 1
      if (minus && value == -3) minus = true;
      digits.push_back({node, shift, minus});
      value += minus ? 1 : -1;
    }
    value /= 2;
  }
  return digits;
}

CmvmSharing::CmvmSharing(const CmvmProblem& problem) : problem_(problem) {
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    SharingNode node{{{{static_cast<IntegerId>(i), 1}}, 0},
                     problem.inputs[i],
                     problem.arrival.empty() ? 0 : problem.arrival[i]};
    by_form_.emplace(form_hash(node.form, {}), static_cast<int>(i));
    nodes_.push_back(std::move(node));
  }
}

int CmvmSharing::cost_of(const Pair& pair) {
  const SharingNode& a = nodes_[static_cast<size_t>(pair.first)];
  const SharingNode& b = nodes_[static_cast<size_t>(pair.second)];
  const int shift_a = std::max(0, -pair.distance), shift_b = std::max(0, pair.distance);
  // Ranges of the operands give the width to within a bit: this is called for every pair seen.
  IntegerRange range;
  const auto up = [](int64_t value, int shift) {
    return checked_multiply(value, int64_t{1} << shift);
  };
  range.low = up(a.range.low, shift_a) +
              (pair.opposite ? -up(b.range.high, shift_b) : up(b.range.low, shift_b));
  range.high = up(a.range.high, shift_a) +
               (pair.opposite ? -up(b.range.low, shift_b) : up(b.range.high, shift_b));
  return chain_bits(a.range, shift_a, b.range, shift_b, pair.opposite, range);
}

CmvmTerm CmvmSharing::add_node(const CmvmTerm& a, const CmvmTerm& b) {
  const SharingNode &na = nodes_[static_cast<size_t>(a.node)],
                    &nb = nodes_[static_cast<size_t>(b.node)];
  LinearForm form = combine(na.form, (a.negative ? -1 : 1) * (int64_t{1} << a.shift), nb.form,
                            (b.negative ? -1 : 1) * (int64_t{1} << b.shift));
  if (form.terms.empty()) return {-1, 0, false};
  // The same form up to sign and a power of two may be there already.
  const FormUnit unit = unit_of(form);
  const uint64_t hash = form_hash(form, unit);
  const auto [from, to] = by_form_.equal_range(hash);
  for (auto it = from; it != to; ++it) {
    const LinearForm& old = nodes_[static_cast<size_t>(it->second)].form;
    const FormUnit own = unit_of(old);
    if (own.shift <= unit.shift && same_form(old, own, form, unit))
      return {it->second, unit.shift - own.shift, unit.negative != own.negative};
  }
  // A subtraction needs a positive operand; two negative ones are added and the sum is negative.
  const bool both = a.negative && b.negative, subtract = a.negative != b.negative;
  const CmvmTerm& x = subtract && a.negative ? b : a;
  const CmvmTerm& y = subtract && a.negative ? a : b;
  if (both)
    for (auto& [input, factor] : form.terms) factor = -factor;
  SharingNode node{std::move(form), {}, 0};
  node.range = range_of(node.form, problem_.inputs);
  const SharingNode &nx = nodes_[static_cast<size_t>(x.node)],
                    &ny = nodes_[static_cast<size_t>(y.node)];
  const int bits = chain_bits(nx.range, x.shift, ny.range, y.shift, subtract, node.range);
  node.arrival = std::max(nx.arrival, ny.arrival) + chain_delay(bits);
  adders_.push_back({x.node, y.node, x.shift, y.shift, subtract, node.range, node.arrival});
  bits_ += bits;
  by_form_.emplace(hash, static_cast<int>(nodes_.size()));
  nodes_.push_back(std::move(node));
  return {static_cast<int>(nodes_.size()) - 1, 0, both};
}

CmvmTerm CmvmSharing::sum_of_column(CmvmColumn column, const SharingOptions& options) {
  // Always the two terms whose sum ends lowest; among those the cheapest.
  while (column.size() > 1) {
    size_t best_x = 0, best_y = 1;
    double best = INFINITY;
    for (size_t x = 0; x < column.size(); ++x)
      for (size_t y = x + 1; y < column.size(); ++y) {
        CmvmTerm a = column[x], b = column[y];
        const int low = std::min(a.shift, b.shift);
        a.shift -= low;
        b.shift -= low;
        const SharingNode &na = nodes_[static_cast<size_t>(a.node)],
                          &nb = nodes_[static_cast<size_t>(b.node)];
        if (a.negative != b.negative && a.negative) std::swap(a, b);
        const SharingNode &nx = nodes_[static_cast<size_t>(a.node)],
                          &ny = nodes_[static_cast<size_t>(b.node)];
        IntegerRange range;
        const bool subtract = a.negative != b.negative;
        const auto up = [](int64_t value, int shift) {
          return checked_multiply(value, int64_t{1} << shift);
        };
        range.low = up(nx.range.low, a.shift) +
                    (subtract ? -up(ny.range.high, b.shift) : up(ny.range.low, b.shift));
        range.high = up(nx.range.high, a.shift) +
                     (subtract ? -up(ny.range.low, b.shift) : up(ny.range.high, b.shift));
        const int bits = chain_bits(nx.range, a.shift, ny.range, b.shift, subtract, range);
        const double top = range.width() + low;
        const double score =
            bits + 8 * top + options.delay_weight * std::max(na.arrival, nb.arrival);
        if (score < best) {
          best = score;
          best_x = x;
          best_y = y;
        }
      }
    CmvmTerm a = column[best_x], b = column[best_y];
    const int low = std::min(a.shift, b.shift);
    a.shift -= low;
    b.shift -= low;
    CmvmTerm sum = add_node(a, b);
    column.erase(column.begin() + static_cast<std::ptrdiff_t>(best_y));
    if (sum.node < 0) {
      column.erase(column.begin() + static_cast<std::ptrdiff_t>(best_x));
    } else {
      sum.shift += low;
      column[best_x] = sum;
    }
  }
  return column.empty() ? CmvmTerm{} : column[0];
}

CmvmColumn CmvmSharing::add_up(std::vector<CmvmColumn> columns, const SharingOptions& options,
                               Random& random) {
  PairTable table(*this, columns, options, random);
  while (table.step()) {
  }
  CmvmColumn results;
  for (CmvmColumn& column : table.rest())
    results.push_back(sum_of_column(std::move(column), options));
  return results;
}

AdderGraph CmvmSharing::finish(const CmvmColumn& outputs) const {
  AdderGraph graph;
  graph.adders = adders_;
  graph.bits = bits_;
  for (const CmvmTerm& term : outputs) {
    graph.outputs.push_back({term.node, term.shift, term.negative});
    if (term.node >= 0)
      graph.arrival = std::max(graph.arrival, nodes_[static_cast<size_t>(term.node)].arrival);
  }
  return graph;
}

}  // namespace mase
