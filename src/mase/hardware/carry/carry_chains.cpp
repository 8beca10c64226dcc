// SPDX-License-Identifier: Apache-2.0
// with_carry_chains:  t = a + b,  u = t - c,  v = d + u   =>   v = chain(chain(a, b, -c), d)
#include "mase/hardware/carry/carry_chains.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "mase/hardware/carry/carry_plan.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/optimize.h"
#include "mase/hardware/optimize/same_sums.h"

namespace mase::carry_chains {
namespace {

constexpr int most_free_bits = 5;      // of a table that a chain's table has room for
constexpr size_t most_candidates = 7;  // earliest and lowest operands, of which the next are chosen

// 2^k or -2^k.
bool is_power(int64_t factor) {
  return factor != 0 && std::has_single_bit(static_cast<uint64_t>(factor < 0 ? -factor : factor));
}

bool is_wiring(const IntegerNode& node) {
  const std::string& name = node.op->name;
  return name == "shift" || name == "negate" || name == "invert" ||
         (name == "scale" && is_power(node.numbers[0]));
}

// Whose linear form is built; tables that are sums are as good as roots.
bool is_known_sum(const IntegerNode& node) { return node.op->affine && !node.op->entries; }

bool is_sum(const IntegerNode& node) { return is_adder(node) && node.op->name != "chain"; }

// A table that takes the place of one bit's worth of an operand in a chain's tables.
bool is_free_table(const IntegerGraph& graph, const IntegerNode& node) {
  if (!node.op->entries) return false;
  int bits = 0;
  for (const IntegerId input : node.inputs) bits += graph.at(input).range.width();
  return bits <= most_free_bits;
}

struct Term {
  IntegerId id = -1;  // in the new graph
  int64_t factor = 1;
  bool free_table = false;
  double arrival = 0;
};

class ChainWriter {
 public:
  ChainWriter(const IntegerGraph& graph, const CarryOptions& options)
      : graph_(graph),
        options_(options),
        builder_(IntegerGraph{graph.name, graph.layers, {}, {}, {}}) {
    find_uses();
  }

  IntegerGraph write() {
    renamed_.assign(graph_.nodes.size(), -1);
    offset_.assign(graph_.nodes.size(), 0);
    unit_.assign(graph_.nodes.size(), 1);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const IntegerNode& node = graph_.nodes[i];
      builder_.set_layer(node.layer);
      if (inside_[i]) continue;
      if (is_sum(node))
        write_sum(i);
      else
        copy(i);
      if (!node.name.empty() && renamed_[i] >= 0 && builder_.at(renamed_[i]).op->evaluate)
        builder_.name(renamed_[i], node.name);
    }
    require_same_heads();
    IntegerGraph result = builder_.graph();
    for (const IntegerId output : graph_.outputs)
      result.outputs.push_back(renamed_[static_cast<size_t>(output)]);
    return without_dead_nodes(result);
  }

 private:
  // Sums that something else reads are what they were, for all inputs.
  void require_same_heads() const {
    std::vector<LinearForm> forms(graph_.nodes.size());
    std::vector<char> heads(graph_.nodes.size(), 0);
    visit_linear_forms(graph_, [&](size_t i, const LinearForm& form) {
      heads[i] = exact_[i] && is_sum(graph_.nodes[i]);
      if (heads[i]) forms[i] = form;
    });
    require_same_sums(forms, heads, builder_.graph(), renamed_, offset_);
  }

  // Who reads a node: sums, through wiring; and others, which need its value as it is.
  void find_uses() {
    const size_t count = graph_.nodes.size();
    sums_.assign(count, 0);
    exact_.assign(count, 0);
    inside_.assign(count, 0);
    for (const IntegerId output : graph_.outputs) exact_[static_cast<size_t>(output)] = 1;
    for (size_t i = count; i-- > 0;) {
      const IntegerNode& node = graph_.nodes[i];
      for (const IntegerId input : node.inputs) {
        const size_t from = static_cast<size_t>(input);
        if (is_sum(node))
          ++sums_[from];
        else if (is_wiring(node)) {
          sums_[from] += sums_[i];
          exact_[from] = exact_[from] || exact_[i];
        } else {
          exact_[from] = 1;
        }
      }
    }
    for (size_t i = 0; i < count; ++i) {
      if (exact_[i]) continue;
      const IntegerNode& node = graph_.nodes[i];
      inside_[i] = is_wiring(node) || (is_sum(node) && sums_[i] == 1);
    }
  }

  void copy(size_t i) {
    const IntegerNode& node = graph_.nodes[i];
    if (!node.op->evaluate) {
      renamed_[i] = builder_.input(node.range, node.frac, node.name);
    } else if (node.op->name == "constant") {
      renamed_[i] = builder_.constant(node.numbers[0], node.frac);
    } else {
      std::vector<IntegerId> inputs;
      for (const IntegerId input : node.inputs)
        inputs.push_back(renamed_[static_cast<size_t>(input)]);
      std::vector<int64_t> numbers = node.numbers;
      IntegerRange range = node.range;
      // Entries from zero up need no sign.
      if (node.op->name == "table" && !exact_[i] && sums_[i] > 0) {
        offset_[i] = *std::min_element(numbers.begin() + 2, numbers.end());
        for (size_t k = 2; k < numbers.size(); ++k) numbers[k] -= offset_[i];
        range = {range.low - offset_[i], range.high - offset_[i]};
      }
      renamed_[i] = builder_.node(node.op->name, std::move(inputs), std::move(numbers));
      const IntegerRange own = builder_.at(renamed_[i]).range;
      builder_.narrow(renamed_[i], {std::max(own.low, range.low), std::min(own.high, range.high)});
    }
    grow();
  }

  // Notes what was written since.
  void grow() {
    const size_t count = builder_.graph().nodes.size();
    for (size_t id = forms_.size(); id < count; ++id) {
      forms_.emplace_back().terms = {{static_cast<IntegerId>(id), 1}};
      arrival_.push_back(0);
      note_arrival(static_cast<IntegerId>(id));
      if (is_known_sum(builder_.at(static_cast<IntegerId>(id))))
        note_form(static_cast<IntegerId>(id));
    }
  }
  void note_arrival(IntegerId id) {
    const IntegerNode& node = builder_.at(id);
    double& time = arrival_[static_cast<size_t>(id)];
    time = 0;
    for (const IntegerId input : node.inputs)
      time = std::max(time, arrival_[static_cast<size_t>(input)]);
    if (node.op->delay) time += node.op->delay(context_of(builder_.graph(), node));
  }
  void note_form(IntegerId id) {
    const IntegerNode& node = builder_.at(id);
    const AffineRule rule = node.op->rule(context_of(builder_.graph(), node));
    LinearForm form{{}, rule.constant};
    for (size_t k = 0; k < node.inputs.size(); ++k)
      form = combine(form, 1, forms_[static_cast<size_t>(node.inputs[k])], rule.factors[k]);
    forms_[static_cast<size_t>(id)] = std::move(form);
  }

  // The sum's terms, sums inside it taken apart.
  std::vector<Term> terms_of(size_t head, int64_t& constant) {
    std::vector<Term> terms;
    std::vector<std::pair<IntegerId, int64_t>> open = {{static_cast<IntegerId>(head), 1}};
    while (!open.empty()) {
      const auto [id, factor] = open.back();
      open.pop_back();
      const size_t i = static_cast<size_t>(id);
      const IntegerNode& node = graph_.nodes[i];
      if (node.op->name == "constant") {
        constant += factor * node.numbers[0];
        continue;
      }
      if (i == head || inside_[i] || is_wiring(node)) {
        const AffineRule rule = node.op->rule(context_of(graph_, node));
        constant += factor * rule.constant;
        for (size_t k = node.inputs.size(); k-- > 0;)
          open.emplace_back(node.inputs[k], checked_multiply(factor, rule.factors[k]));
        continue;
      }
      constant += factor * offset_[i];
      const IntegerId own = renamed_[i];
      terms.push_back({own, checked_multiply(factor, unit_[i]),
                       sums_[i] == 1 && !exact_[i] && is_free_table(graph_, node),
                       arrival_[static_cast<size_t>(own)]});
    }
    return terms;
  }

  const IntegerRange& range_of_term(const Term& term) const { return builder_.at(term.id).range; }
  CarryOperand entering(const Term& term) const { return {range_of_term(term), term.factor}; }
  int top_of(const Term& term) const { return entering(term).top(); }

  // What the operands' own bits add up to, before any other constant.
  int64_t natural(std::span<const Term> operands) const {
    int64_t constant = 0;
    for (const Term& term : operands) {
      const CarryOperand operand = entering(term);
      constant += operand.offset() * (int64_t{1} << operand.shift);
    }
    return constant;
  }

  // sum of the operands + constant, in units of the lowest of them; what is left of the constant
  // stays with the caller.
  Term add(std::span<const Term> operands, int64_t constant) {
    int low = 62;
    for (const Term& term : operands) low = std::min(low, entering(term).shift);
    MASE_CHECK((constant & ((int64_t{1} << low) - 1)) == 0, "a constant below its sum");
    std::vector<int64_t> numbers = {frac_ - low, constant >> low};
    std::vector<IntegerId> inputs;
    for (const Term& term : operands) {
      numbers.push_back(term.factor >> low);
      inputs.push_back(term.id);
    }
    const IntegerId id = builder_.node("chain", std::move(inputs), std::move(numbers));
    grow();
    // The exact interval; the plan must hold for it as well.
    const IntegerRange exact = range_of(forms_[static_cast<size_t>(id)], builder_.graph());
    const IntegerRange wide = builder_.at(id).range;
    builder_.narrow(id, exact);
    if (!fits(id)) builder_.narrow(id, wide);
    note_arrival(id);
    return {id, int64_t{1} << low, false, arrival_[static_cast<size_t>(id)]};
  }
  bool fits(IntegerId id) const {
    const IntegerNode& node = builder_.at(id);
    return node.op->check(context_of(builder_.graph(), node)).empty();
  }

  std::optional<CarryPlan> planned(std::span<const Term> operands, int64_t constant,
                                   int width) const {
    std::vector<CarryOperand> entering_operands;
    for (const Term& term : operands) entering_operands.push_back(entering(term));
    return carry_plan(entering_operands, constant, width);
  }

  // How many tables a sum of these takes, its own constant chosen freely.
  double tables(std::span<const Term> operands) const {
    int low = 62, top = 0;
    for (const Term& term : operands) {
      const CarryOperand operand = entering(term);
      low = std::min(low, operand.shift);
      top = std::max(top, operand.top());
    }
    // Bits that two have, and where the third one's leave something over.
    int count = 0, before = 0;
    for (int i = low; i < top + 2; ++i) {
      int live = 0;
      for (const Term& term : operands) live += entering(term).has(i);
      count += live + (before >= 2 && operands.size() == 3) >= 2;
      before = live;
    }
    return count;
  }

  double score(std::span<const Term> operands) const {
    double late = 0;
    int low = 62, top = 0;
    for (const Term& term : operands) {
      const CarryOperand operand = entering(term);
      low = std::min(low, operand.shift);
      top = std::max(top, operand.top());
      late = std::max(late, term.arrival);
    }
    return tables(operands) + 8.0 * (top + 1) + options_.delay_weight * late;
  }
  // What a term adds to the score of a sum that it ends.
  double lateness(const Term& term) const {
    return 8.0 * top_of(term) + options_.delay_weight * term.arrival;
  }

  // The constant that this sum takes off `rest` for nothing.
  int64_t taken(std::span<const Term> operands, int64_t rest) const {
    int64_t chosen = natural(operands);
    int low = 62;
    for (const Term& term : operands) low = std::min(low, entering(term).shift);
    const double least = tables(operands);
    // The lowest ones, as long as they cost nothing.
    for (int k = 0; k < 2; ++k) {
      const uint64_t open = static_cast<uint64_t>(rest - chosen);
      if (open == 0) break;
      const int64_t next = chosen + static_cast<int64_t>(open & (~open + 1));
      if (std::countr_zero(open) < low) break;
      int top = 0;
      for (const Term& term : operands) top = std::max(top, top_of(term));
      if (std::countr_zero(open) >= top) break;
      const std::optional<CarryPlan> plan = planned(operands, next, top + 2);
      if (!plan || plan->tables > least + 0.5) break;
      chosen = next;
    }
    return chosen;
  }

  void write_sum(size_t i) {
    const IntegerNode& node = graph_.nodes[i];
    frac_ = node.frac;
    int64_t constant = 0;
    std::vector<Term> terms = terms_of(i, constant);
    if (terms.size() < 2) return write_plain(i, terms, constant);
    terms = in_lines(std::move(terms), constant);
    while (terms.size() > 1) {
      const size_t count =
          terms.size() % 2 == 0 && terms.size() > 3 ? 2 : std::min<size_t>(3, terms.size());
      std::sort(terms.begin(), terms.end(), [&](const Term& a, const Term& b) {
        const double x = lateness(a), y = lateness(b);
        return x != y ? x < y : a.id < b.id;
      });
      if (count == terms.size()) return finish(i, std::move(terms), constant);
      const std::vector<size_t> chosen = best_group(terms, count);
      std::vector<Term> operands;
      for (const size_t k : chosen) operands.push_back(terms[k]);
      for (size_t k = chosen.size(); k-- > 0;)
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(chosen[k]));
      terms.push_back(add_taking(operands, constant));
    }
    finish(i, std::move(terms), constant);
  }

  Term add_taking(const std::vector<Term>& operands, int64_t& constant) {
    const int64_t own = taken(operands, constant);
    constant -= own;
    return add(operands, own);
  }

  std::vector<size_t> best_group(const std::vector<Term>& terms, size_t count) const {
    const size_t n = std::min(terms.size(), most_candidates);
    std::vector<size_t> best;
    double least = INFINITY;
    const auto consider = [&](std::vector<size_t> group) {
      std::vector<Term> operands;
      for (const size_t k : group) operands.push_back(terms[k]);
      const double now = score(operands);
      if (now >= least) return;
      least = now;
      best = std::move(group);
    };
    for (size_t a = 0; a < n; ++a)
      for (size_t b = a + 1; b < n; ++b) {
        if (count == 2)
          consider({a, b});
        else
          for (size_t c = b + 1; c < n; ++c) consider({a, b, c});
      }
    return best;
  }

  // Tables that cost nothing join chains of some of them, each begun by a term that is there
  // anyway.
  std::vector<Term> in_lines(std::vector<Term> terms, int64_t& constant) {
    std::vector<Term> rest, tables;
    for (Term& term : terms) (term.free_table ? tables : rest).push_back(term);
    if (tables.empty()) return rest;
    const auto widest = [&](const Term& a, const Term& b) {
      const int x = top_of(a), y = top_of(b);
      return x != y ? x > y : a.id < b.id;
    };
    std::sort(tables.begin(), tables.end(), widest);
    const size_t in_line = static_cast<size_t>(std::max(1, options_.tables_in_line));
    const size_t lines =
        std::max<size_t>(1, (tables.size() + rest.size() + in_line) / (in_line + 1));
    // The heads: other terms, then the widest tables, which are written out.
    std::stable_sort(rest.begin(), rest.end(),
                     [](const Term& a, const Term& b) { return a.arrival < b.arrival; });
    std::vector<Term> heads;
    size_t next = 0, used = 0;
    for (; heads.size() < lines && used < rest.size(); ++used) heads.push_back(rest[used]);
    for (; heads.size() < lines && next < tables.size(); ++next) heads.push_back(tables[next]);
    // The last sum of all is left to the caller.
    const bool one_line = heads.size() == 1 && used == rest.size();
    for (size_t line = 0; next + one_line < tables.size(); ++next, line = (line + 1) % heads.size())
      heads[line] = add_taking({heads[line], tables[next]}, constant);
    heads.insert(heads.end(), rest.begin() + static_cast<std::ptrdiff_t>(used), rest.end());
    for (Term& head : heads) head.free_table = false;
    if (next < tables.size()) heads.push_back(tables[next]);
    return heads;
  }

  // The last sum has the constant that is wanted, or leaves it to those that read it.
  void finish(size_t i, std::vector<Term> terms, int64_t constant) {
    const IntegerNode& node = graph_.nodes[i];
    std::stable_partition(terms.begin(), terms.end(),
                          [](const Term& term) { return !term.free_table; });
    if (!exact_[i]) {
      const int64_t own = natural(terms);
      const Term sum = add(terms, own);
      renamed_[i] = sum.id;
      unit_[i] = sum.factor;
      offset_[i] = constant - own;
      return;
    }
    const int width = std::max(1, node.range.width());
    int low = 62;
    for (const Term& term : terms) low = std::min(low, entering(term).shift);
    // Constants below the lowest term are wiring.
    if ((constant & ((int64_t{1} << low) - 1)) != 0) low = 0;
    if (planned(shifted_down(terms, low), constant >> low, width - low))
      return write_head(i, terms, constant, low);
    MASE_CHECK(terms.size() == 3, "a sum of two has no place for its constant");
    const Term pair = add_taking({terms[0], terms[1]}, constant);
    finish(i, {pair, terms[2]}, constant);
  }

  std::vector<Term> shifted_down(std::vector<Term> terms, int low) const {
    for (Term& term : terms) term.factor >>= low;
    return terms;
  }

  IntegerId shifted(const Term& term) {
    const IntegerId id = builder_.node("shift", {term.id}, {entering(term).shift});
    grow();
    return id;
  }

  void write_head(size_t i, const std::vector<Term>& terms, int64_t constant, int low) {
    const IntegerNode& node = graph_.nodes[i];
    std::vector<int64_t> numbers = {node.frac - low, constant >> low};
    std::vector<IntegerId> inputs;
    for (const Term& term : terms) {
      numbers.push_back(term.factor >> low);
      inputs.push_back(term.id);
    }
    IntegerId id = builder_.node("chain", std::move(inputs), std::move(numbers));
    grow();
    const int64_t unit = int64_t{1} << low;
    builder_.narrow(id, {node.range.low / unit, node.range.high / unit});
    MASE_CHECK(fits(id), "a chain that was planned does not fit");
    note_arrival(id);
    if (low > 0) {
      id = builder_.node("shift", {id}, {low});
      grow();
    }
    renamed_[i] = id;
  }

  // A single term: what the sum was, as it was.
  void write_plain(size_t i, const std::vector<Term>& terms, int64_t constant) {
    const IntegerNode& node = graph_.nodes[i];
    if (terms.empty()) {
      renamed_[i] = builder_.constant(constant, node.frac);
      grow();
      return;
    }
    const Term& term = terms[0];
    if (!exact_[i]) {
      renamed_[i] = term.id;
      unit_[i] = term.factor;
      offset_[i] = constant;
      return;
    }
    IntegerId id = term.id;
    if (const int shift = entering(term).shift; shift > 0) id = shifted(term);
    const IntegerId zero = builder_.constant(constant, node.frac);
    grow();
    if (builder_.at(id).frac != node.frac) {
      id = builder_.node("scale", {id}, {1, node.frac});
      grow();
    }
    if (constant != 0 || term.factor < 0) {
      id = term.factor < 0 ? builder_.node("subtract", {zero, id}, {0, 0, 0})
                           : builder_.node("add", {id, zero}, {0, 0, 0});
      grow();
    }
    builder_.narrow(id, node.range);
    renamed_[i] = id;
  }

  const IntegerGraph& graph_;
  CarryOptions options_;
  IntegerBuilder builder_;
  std::vector<int> sums_;             // sums that read it, through wiring
  std::vector<char> exact_, inside_;  // something else does; it is part of its reader
  std::vector<IntegerId> renamed_;
  // A node is  unit * new one + offset;  1 and 0 where something but sums reads it.
  std::vector<int64_t> unit_, offset_;
  std::vector<LinearForm> forms_;  // of the new nodes
  std::vector<double> arrival_;
  int frac_ = 0;
};

}  // namespace
}  // namespace mase::carry_chains

namespace mase {

IntegerGraph with_carry_chains(const IntegerGraph& graph, const CarryOptions& options) {
  return carry_chains::ChainWriter(graph, options).write();
}

std::vector<char> tables_in_chains(const IntegerGraph& graph) {
  std::vector<int> readers(graph.nodes.size(), 0);
  std::vector<char> inside(graph.nodes.size(), 0);
  for (const IntegerId output : graph.outputs) ++readers[static_cast<size_t>(output)];
  for (const IntegerNode& node : graph.nodes)
    for (const IntegerId input : node.inputs) ++readers[static_cast<size_t>(input)];
  for (const IntegerNode& node : graph.nodes) {
    if (node.op->name != "chain" || node.inputs.size() != 2) continue;
    const IntegerId table = node.inputs[1];
    inside[static_cast<size_t>(table)] = readers[static_cast<size_t>(table)] == 1 &&
                                         carry_chains::is_free_table(graph, graph.at(table));
  }
  return inside;
}

}  // namespace mase
