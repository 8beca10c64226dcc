// SPDX-License-Identifier: Apache-2.0
// Every value of both graphs is written as a sum of multiples of atoms, in one way only: an atom is
// an input, or a function of other atoms. Functions of few values are tabulated for all of them, up
// to a factor and a constant, whichever operations they were made with; of wide operands they are
// known by their operation and their operands' sums, in one form of those that mean the same
// (limits of limits, multiples drawn out of a rounding). Where both graphs' outputs are the same
// sums of the same atoms, they are the same functions.
#include "mase/hardware/verify/same_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/hardware/verify/meanings.h"

namespace mase {
namespace {

using Codes = std::vector<int64_t>;

constexpr int64_t most_tuples = 1 << 16;  // values of several atoms
constexpr int64_t most_values = 1 << 13;  // of one sum
constexpr int64_t endless = int64_t{1} << 62;
constexpr int64_t most_drop = 40;  // bits of floors of floors

struct Form {
  std::vector<std::pair<int, int64_t>> terms;  // by rising atom, no zero factors
  int64_t constant = 0;

  bool operator==(const Form&) const = default;
  auto operator<=>(const Form&) const = default;
};

Form constant_form(int64_t value) { return {{}, value}; }

Form combined(const std::vector<Form>& parts, const Codes& factors, int64_t constant) {
  Form result{{}, constant};
  for (size_t k = 0; k < parts.size(); ++k) {
    if (factors[k] == 0) continue;
    result.constant = exact_sum(result.constant, exact_product(parts[k].constant, factors[k]));
    for (const auto& [atom, factor] : parts[k].terms)
      result.terms.emplace_back(atom, exact_product(factor, factors[k]));
  }
  std::sort(result.terms.begin(), result.terms.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const auto& [atom, factor] : result.terms)
    if (kept > 0 && result.terms[kept - 1].first == atom)
      result.terms[kept - 1].second = exact_sum(result.terms[kept - 1].second, factor);
    else
      result.terms[kept++] = {atom, factor};
  result.terms.resize(kept);
  std::erase_if(result.terms, [](const auto& term) { return term.second == 0; });
  return result;
}

Form scaled(const Form& form, int64_t factor, int64_t constant = 0) {
  return combined({form}, {factor}, constant);
}

// form = factor * primitive + constant; the primitive's first factor is above zero.
struct Primitive {
  Form form;
  int64_t factor = 1, constant = 0;
};
Primitive primitive_of(const Form& form) {
  Primitive result{form, 0, form.constant};
  for (const auto& [atom, factor] : form.terms) result.factor = std::gcd(result.factor, factor);
  if (!form.terms.empty() && form.terms[0].second < 0) result.factor = -result.factor;
  if (result.factor == 0) result.factor = 1;
  for (auto& [atom, factor] : result.form.terms) factor /= result.factor;
  result.form.constant = 0;
  return result;
}

// The whole part of form / 2^drop.
struct Floor {
  Form form;
  int64_t drop = 0;
};

struct Atom {
  Interval range;
  Codes image = {};                  // its values where not all of the interval occur, rising
  std::vector<int> base = {};        // what it is tabulated by
  Codes table = {};                  // for all values of these, the first one's next to each other
  std::optional<Form> limited = {};  // it is this sum within `limits`
  Interval limits = {};
  std::optional<Floor> floor = {};  // of earlier atoms

  int64_t count() const {
    return image.empty() ? range.high - range.low + 1 : static_cast<int64_t>(image.size());
  }
  int64_t value(int64_t index) const {
    return image.empty() ? range.low + index : image[static_cast<size_t>(index)];
  }
};

using Function = std::function<int64_t(const int64_t*)>;

class Atoms {
 public:
  int64_t tabulated = 0, by_form = 0;  // found again

  Form input(size_t index, const Interval& range) {
    while (inputs_.size() <= index) {
      inputs_.push_back(static_cast<int>(atoms_.size()));
      atoms_.push_back({range});
    }
    return {{{inputs_[index], 1}}, 0};
  }

  Form of(const CheckedNode& node, const std::vector<Form>& in) {
    if (node.op->sum) {
      const SumMeaning sum = node.op->sum(node);
      return combined(in, sum.factors, sum.constant);
    }
    const std::string& name = node.op->name;
    if (name == "compare")  // a < b where b - a is above zero
      return function({combined({in[1], in[0]}, {1, -1}, 0)},
                      [](const int64_t* v) { return int64_t{v[0] > 0}; }, "above_zero", {});
    if (name == "join") return joined(node, in);
    if (name == "select") return selected(node, in);
    if (name == "multiply") return product(in);
    if (name == "relu") return limited(in[0], {0, endless});
    if (name == "clamp") return limited(in[0], {node.numbers[0], node.numbers[1]});
    if (name == "floor") return floored(in[0], node.numbers[0]);
    if (starts_with(name, "round_"))
      return within_limits(in[0], [&](const Form& form) {
        return function({form}, evaluation(node), name, node.numbers);
      });
    return function(in, evaluation(node), name, node.numbers);
  }

 private:
  Interval plain_interval(const Form& form) const {
    Interval total{form.constant, form.constant};
    for (const auto& [atom, factor] : form.terms) {
      const Interval& range = atoms_[static_cast<size_t>(atom)].range;
      const int64_t a = exact_product(factor, range.low), b = exact_product(factor, range.high);
      total = {exact_sum(total.low, std::min(a, b)), exact_sum(total.high, std::max(a, b))};
    }
    return total;
  }

  // Also as the floor that a sum with a floor in it is: its parts may depend on one another.
  Interval interval(const Form& form) const {
    Interval total = plain_interval(form);
    Floor whole{form, 0};
    while (const std::optional<Floor> next = unfloored(whole.form)) {
      whole = {next->form, whole.drop + next->drop};
      if (whole.drop > most_drop) break;
      const Interval own = plain_interval(whole.form);
      total = {std::max(total.low, own.low >> whole.drop),
               std::min(total.high, own.high >> whole.drop)};
    }
    return total;
  }

  // A sum with one multiple of a floor as the floor of a sum: floor(a / 2^d) + b is
  // floor((a + 2^d b) / 2^d), -floor(a / 2^d) is floor((2^d - 1 - a) / 2^d). Of several the latest.
  std::optional<Floor> unfloored(const Form& form) const {
    for (size_t k = form.terms.size(); k-- > 0;) {
      const auto [atom, factor] = form.terms[k];
      const std::optional<Floor>& own = atoms_[static_cast<size_t>(atom)].floor;
      if (!own || (factor != 1 && factor != -1)) continue;
      const int64_t unit = int64_t{1} << own->drop;
      Form rest = form;
      rest.terms.erase(rest.terms.begin() + static_cast<std::ptrdiff_t>(k));
      try {
        return Floor{combined({own->form, rest}, {factor, unit}, factor < 0 ? unit - 1 : 0),
                     own->drop};
      } catch (const Error&) {
        return {};  // beyond 64 bits
      }
    }
    return {};
  }

  // Values that never come, of atoms that depend on one another, may lie outside a table.
  static Function evaluation(const CheckedNode& node) {
    const bool table = node.op->name == "table";
    return [&node, table](const int64_t* v) -> int64_t {
      if (table && (v[0] < node.numbers[0] ||
                    v[0] - node.numbers[0] >= static_cast<int64_t>(node.numbers.size()) - 2))
        return 0;
      return node.op->value(v, node);
    };
  }

  // Of single operations: a constant, a table, or the operation itself.
  Form function(const std::vector<Form>& in, const Function& value, const std::string& name,
                const Codes& numbers) {
    if (const std::optional<Form> table = tabulate(in, value)) return *table;
    return symbol(name, numbers, in, [&] {
      if (name == "above_zero") return Interval{0, 1};
      CheckedNode node{find_meaning(name), {}, numbers, {}, 0};
      std::vector<Interval> ranges;
      for (const Form& form : in) ranges.push_back(interval(form));
      return interval_of(node, ranges);
    });
  }

  template <class RangeOf>
  Form symbol(const std::string& name, const Codes& numbers, const std::vector<Form>& in,
              const RangeOf& range) {
    const auto [entry, fresh] =
        symbols_.try_emplace({name, numbers, in}, static_cast<int>(atoms_.size()));
    if (fresh)
      atoms_.push_back({range()});
    else
      ++by_form;
    return {{{entry->second, 1}}, 0};
  }

  // The atoms that a function is tabulated by: those it reads, or what these are tabulated by; else
  // the one sum that all its operands are multiples of. Nothing: too many values.
  std::optional<std::vector<int>> base_of(const std::vector<Form>& in) {
    std::vector<int> base;
    for (const Form& form : in)
      for (const auto& [atom, factor] : form.terms) base.push_back(atom);
    const auto count = [&](std::vector<int>& list) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      int64_t tuples = 1;
      for (const int atom : list) {
        if (atoms_[static_cast<size_t>(atom)].count() > most_tuples) return most_tuples + 1;
        tuples = std::min(most_tuples + 1, tuples * atoms_[static_cast<size_t>(atom)].count());
      }
      return tuples;
    };
    bool few = count(base) <= most_tuples;
    while (true) {
      std::vector<int> deeper;
      for (const int atom : base) {
        const std::vector<int>& own = atoms_[static_cast<size_t>(atom)].base;
        if (own.empty())
          deeper.push_back(atom);
        else
          deeper.insert(deeper.end(), own.begin(), own.end());
      }
      if (count(deeper) > most_tuples || deeper == base) break;
      base = std::move(deeper);
      few = true;
    }
    if (few) return base;
    // One sum.
    std::optional<Form> whole;
    for (const Form& form : in) {
      if (form.terms.empty()) continue;
      Form own = primitive_of(form).form;
      if (whole && *whole != own) return {};
      whole = std::move(own);
    }
    const Interval range = interval(*whole);
    if (range.high - range.low >= most_values) return {};
    const auto [entry, fresh] = sums_.try_emplace(*whole, static_cast<int>(atoms_.size()));
    if (fresh) atoms_.push_back({range});
    return std::vector<int>{entry->second};
  }

  // A function of a sum with a floor in it is one of the sum that the floor is of, if that has few
  // enough values.
  std::optional<Form> tabulate(const std::vector<Form>& in, const Function& value) {
    if (in.size() == 1) {
      const Primitive part = primitive_of(in[0]);
      if (const std::optional<Floor> whole = unfloored(part.form))
        if (const std::optional<Form> table =
                tabulate({whole->form}, [&, drop = whole->drop](const int64_t* v) {
                  const int64_t number =
                      exact_sum(exact_product(v[0] >> drop, part.factor), part.constant);
                  return value(&number);
                }))
          return table;
    }
    return tabulate_atoms(in, value);
  }

  std::optional<Form> tabulate_atoms(const std::vector<Form>& in, const Function& value) {
    const std::optional<std::vector<int>> found = base_of(in);
    if (!found) return {};
    std::vector<int> base = *found;
    int64_t tuples = 1;
    std::vector<int64_t> strides;
    for (const int atom : base) {
      strides.push_back(tuples);
      tuples *= atoms_[static_cast<size_t>(atom)].count();
    }
    // Each operand is a constant and multiples of what a place in a table, or an atom's value, is.
    struct Part {
      int64_t factor = 1;
      size_t place = 0;                                      // in the base, or
      const Codes* table = nullptr;                          // a table over these places of it
      std::vector<std::pair<size_t, int64_t>> indices = {};  // and their strides in it
    };
    std::vector<std::vector<Part>> parts(in.size());
    const auto place_of = [&](int atom) -> std::optional<size_t> {
      const auto at = std::lower_bound(base.begin(), base.end(), atom);
      if (at == base.end() || *at != atom) return {};
      return static_cast<size_t>(at - base.begin());
    };
    for (size_t k = 0; k < in.size(); ++k) {
      if (base.size() == 1 && sums_.count(primitive_of(in[k]).form) != 0 &&
          sums_.at(primitive_of(in[k]).form) == base[0]) {
        parts[k].push_back({primitive_of(in[k]).factor, 0});
        continue;
      }
      for (const auto& [atom, factor] : in[k].terms) {
        if (const std::optional<size_t> place = place_of(atom)) {
          parts[k].push_back({factor, *place});
          continue;
        }
        const Atom& own = atoms_[static_cast<size_t>(atom)];
        Part part{factor, 0, &own.table};
        int64_t stride = 1;
        for (const int below : own.base) {
          const std::optional<size_t> place = place_of(below);
          if (!place) return {};
          part.indices.emplace_back(*place, stride);
          stride *= atoms_[static_cast<size_t>(below)].count();
        }
        parts[k].push_back(std::move(part));
      }
    }
    Codes table(static_cast<size_t>(tuples)), operands(in.size());
    std::vector<int64_t> index(base.size(), 0);
    for (size_t at = 0; at < table.size(); ++at) {
      for (size_t k = 0; k < in.size(); ++k) {
        int64_t sum = in[k].constant;
        for (const Part& part : parts[k]) {
          int64_t own = 0;
          if (part.table) {
            size_t entry = 0;
            for (const auto& [place, stride] : part.indices)
              entry += static_cast<size_t>(index[place] * stride);
            own = (*part.table)[entry];
          } else {
            own = atoms_[static_cast<size_t>(base[part.place])].value(index[part.place]);
          }
          sum = exact_sum(sum, exact_product(part.factor, own));
        }
        operands[k] = sum;
      }
      table[at] = value(operands.data());
      for (size_t k = 0; k < base.size(); ++k) {
        if (++index[k] < atoms_[static_cast<size_t>(base[k])].count()) break;
        index[k] = 0;
      }
    }
    return as_form(std::move(base), std::move(table));
  }

  // Without the atoms that it does not depend on, up to a factor and a constant.
  Form as_form(std::vector<int> base, Codes table) {
    for (size_t k = 0, stride = 1; k < base.size();) {
      const auto count = static_cast<size_t>(atoms_[static_cast<size_t>(base[k])].count());
      bool depends = false;
      for (size_t i = 0; i < table.size() && !depends; ++i)
        depends = table[i] != table[i - i / stride % count * stride];
      if (depends) {
        stride *= count;
        ++k;
        continue;
      }
      Codes smaller;
      for (size_t i = 0; i < table.size(); ++i)
        if (i / stride % count == 0) smaller.push_back(table[i]);
      table = std::move(smaller);
      base.erase(base.begin() + static_cast<std::ptrdiff_t>(k));
    }
    if (base.empty()) return constant_form(table[0]);
    if (base.size() > 1)
      if (const std::optional<Form> sum = as_sum(base, table)) return *sum;
    const int64_t first = table[0];
    int64_t factor = 0;
    for (int64_t& value : table) {
      value = exact_sum(value, -first);
      factor = std::gcd(factor, value);
    }
    const auto other = std::find_if(table.begin(), table.end(), [](int64_t v) { return v != 0; });
    if (*other < 0) factor = -factor;
    for (int64_t& value : table) value /= factor;
    if (const std::optional<Form> same = as_base(base, table, factor, first)) return *same;
    const auto [entry, fresh] = tables_.try_emplace({base, table}, static_cast<int>(atoms_.size()));
    if (fresh) {
      Atom atom;
      atom.image = table;
      std::sort(atom.image.begin(), atom.image.end());
      atom.image.erase(std::unique(atom.image.begin(), atom.image.end()), atom.image.end());
      atom.range = {atom.image.front(), atom.image.back()};
      atom.base = std::move(base);
      atom.table = std::move(table);
      atoms_.push_back(std::move(atom));
    } else {
      ++tabulated;
    }
    return {{{entry->second, factor}}, first};
  }

  // A table that is a sum of tables, each of some of the atoms: as these. Two atoms belong together
  // where what one of them changes depends on the other.
  std::optional<Form> as_sum(const std::vector<int>& base, const Codes& table) {
    const size_t count = base.size();
    std::vector<size_t> strides, sizes, group(count);
    for (size_t k = 0, stride = 1; k < count; ++k) {
      strides.push_back(stride);
      sizes.push_back(static_cast<size_t>(atoms_[static_cast<size_t>(base[k])].count()));
      stride *= sizes[k];
      group[k] = k;
    }
    const auto without = [&](size_t i, size_t k) {
      return i - i / strides[k] % sizes[k] * strides[k];
    };
    for (size_t j = 0; j < count; ++j)
      for (size_t k = j + 1; k < count; ++k) {
        if (group[j] == group[k]) continue;
        for (size_t i = 0; i < table.size(); ++i) {
          const size_t less = without(i, j);
          if (exact_sum(table[i], -table[less]) ==
              exact_sum(table[without(i, k)], -table[without(less, k)]))
            continue;
          const size_t from = group[k], to = group[j];
          for (size_t& one : group)
            if (one == from) one = to;
          break;
        }
      }
    if (std::all_of(group.begin(), group.end(), [&](size_t one) { return one == group[0]; }))
      return {};
    Form total = constant_form(table[0]);
    for (size_t g = 0; g < count; ++g) {
      std::vector<int> own;
      std::vector<size_t> places;
      size_t tuples = 1;
      for (size_t k = 0; k < count; ++k) {
        if (group[k] != g) continue;
        own.push_back(base[k]);
        places.push_back(k);
        tuples *= sizes[k];
      }
      if (own.empty()) continue;
      Codes part;
      for (size_t i = 0; i < tuples; ++i) {
        size_t at = 0, rest = i;
        for (const size_t k : places) {
          at += rest % sizes[k] * strides[k];
          rest /= sizes[k];
        }
        part.push_back(exact_sum(table[at], -table[0]));
      }
      total = combined({total, as_form(std::move(own), std::move(part))}, {1, 1}, 0);
    }
    return total;
  }

  // A function that does nothing but multiply and add is no atom of its own.
  std::optional<Form> as_base(const std::vector<int>& base, const Codes& table, int64_t factor,
                              int64_t first) const {
    if (base.size() != 1) return {};
    const Atom& own = atoms_[static_cast<size_t>(base[0])];
    for (size_t i = 1; i < table.size(); ++i) {
      const int64_t step = own.value(static_cast<int64_t>(i)) - own.value(0);
      if (exact_product(table[i], own.value(1) - own.value(0)) != exact_product(table[1], step))
        return {};
    }
    const int64_t unit = own.value(1) - own.value(0), rise = exact_product(table[1], factor);
    if (rise % unit != 0) return {};
    for (const auto& [form, atom] : sums_)
      if (atom == base[0]) return scaled(form, rise / unit, first - rise / unit * own.value(0));
    return scaled({{{base[0], 1}}, 0}, rise / unit, first - rise / unit * own.value(0));
  }

  Form joined(const CheckedNode& node, const std::vector<Form>& in) {
    std::vector<Form> parts;
    Codes factors;
    int64_t at = 0;
    for (size_t k = 0; k < in.size(); ++k) {
      const int64_t width = node.numbers[k];
      const int64_t mask = (int64_t{1} << width) - 1;
      parts.push_back(
          function({in[k]}, [mask](const int64_t* v) { return v[0] & mask; }, "wrap", {width, 0}));
      factors.push_back(int64_t{1} << at);
      at += width;
    }
    return combined(parts, factors, 0);
  }

  // c ? a : b  =>  b + (c ? a - b : 0)
  Form selected(const CheckedNode& node, const std::vector<Form>& in) {
    if (const std::optional<Form> table = tabulate(in, evaluation(node))) return *table;
    const Form difference = combined({in[1], in[2]}, {1, -1}, 0);
    if (difference.terms.empty()) return combined({in[2], in[0]}, {1, difference.constant}, 0);
    Primitive part = primitive_of(difference);
    part.factor = part.factor < 0 ? -std::gcd(part.factor, part.constant)
                                  : std::gcd(part.factor, part.constant);
    Form chosen = difference;
    for (auto& [atom, factor] : chosen.terms) factor /= part.factor;
    chosen.constant /= part.factor;
    // 1 - c chooses the other way round.
    Form when = in[0], rest = in[2];
    if (when.terms.size() == 1 && when.terms[0].second == -1 && when.constant == 1) {
      when = {{{when.terms[0].first, 1}}, 0};
      rest = in[1];
      part.factor = -part.factor;
    }
    const Form atom = symbol("select", {}, {when, chosen}, [&] {
      const Interval range = interval(chosen);
      return Interval{std::min<int64_t>(0, range.low), std::max<int64_t>(0, range.high)};
    });
    return combined({rest, atom}, {1, part.factor}, 0);
  }

  Form product(const std::vector<Form>& in) {
    Primitive a = primitive_of(in[0]), b = primitive_of(in[1]);
    if (a.form.terms.empty()) return scaled(in[1], a.constant);
    if (b.form.terms.empty()) return scaled(in[0], b.constant);
    if (b.form < a.form) std::swap(a, b);
    const Form atom = symbol("multiply", {}, {a.form, b.form}, [&] {
      CheckedNode node{find_meaning("multiply"), {}, {}, {}, 0};
      return interval_of(node, {interval(a.form), interval(b.form)});
    });
    return combined({atom, a.form, b.form},
                    {exact_product(a.factor, b.factor), exact_product(a.factor, b.constant),
                     exact_product(b.factor, a.constant)},
                    exact_product(a.constant, b.constant));
  }

  // Within limits; beyond its own interval they say nothing.
  Form limited(const Form& in, Interval limits) {
    const Interval own = interval(in);
    if (limits.low <= own.low && own.high <= limits.high) return in;
    if (own.high <= limits.low) return constant_form(limits.low);
    if (own.low >= limits.high) return constant_form(limits.high);
    // Of what is limited already: limits of limits, below.
    const bool again =
        in.terms.size() == 1 && atoms_[static_cast<size_t>(in.terms[0].first)].limited.has_value();
    if (!again)
      if (const std::optional<Form> table = tabulate(
              {in}, [&](const int64_t* v) { return std::clamp(v[0], limits.low, limits.high); }))
        return *table;
    if (limits.low <= own.low) limits.low = -endless;
    if (limits.high >= own.high) limits.high = endless;
    const Primitive part = primitive_of(in);
    // Limits as the primitive has them, where they are whole there.
    int64_t factor = part.factor;
    const auto moved = [&](int64_t limit) {
      return limit == endless || limit == -endless ? limit : limit - part.constant;
    };
    Interval inner{moved(limits.low), moved(limits.high)};
    for (const int64_t limit : {inner.low, inner.high})
      if (limit != endless && limit != -endless) factor = std::gcd(factor, limit);
    if (part.factor < 0) factor = -std::abs(factor);
    Form rest{in.terms, 0};
    for (auto& [atom, own_factor] : rest.terms) own_factor /= factor;
    const auto divided = [&](int64_t limit) {
      if (limit == endless || limit == -endless) return factor < 0 ? -limit : limit;
      return limit / factor;
    };
    inner = {divided(inner.low), divided(inner.high)};
    if (factor < 0) std::swap(inner.low, inner.high);
    // Limits of limits.
    if (rest.terms.size() == 1 && rest.terms[0].second == 1)
      if (const Atom& below = atoms_[static_cast<size_t>(rest.terms[0].first)]; below.limited) {
        const Interval both{std::clamp(below.limits.low, inner.low, inner.high),
                            std::clamp(below.limits.high, inner.low, inner.high)};
        const Form inner_form = *below.limited;
        return scaled(limited(inner_form, both), factor, part.constant);
      }
    const Form atom = symbol("limit", {inner.low, inner.high}, {rest}, [&] {
      const Interval range = interval(rest);
      return Interval{std::clamp(range.low, inner.low, inner.high),
                      std::clamp(range.high, inner.low, inner.high)};
    });
    Atom& made = atoms_[static_cast<size_t>(atom.terms[0].first)];
    made.limited = rest;
    made.limits = inner;
    return scaled(atom, factor, part.constant);
  }

  // Without powers of two that all factors have.
  static void divide_common(Form& form, int64_t& drop) {
    if (form.terms.empty()) return;
    int64_t common = int64_t{1} << drop;
    for (const auto& [atom, factor] : form.terms) common = std::gcd(common, factor);
    const int64_t bits = std::countr_zero(static_cast<uint64_t>(common));
    for (auto& [atom, factor] : form.terms) factor >>= bits;
    form.constant >>= bits;
    drop -= bits;
  }

  // form / 2^drop = outside + inside / 2^drop; outside are whole multiples or, if all are reduced,
  // what leaves inside's factors from zero up and below 2^drop.
  static std::pair<Form, Form> divided(const Form& form, int64_t drop, bool reduced) {
    const int64_t below = (int64_t{1} << drop) - 1;
    std::pair<Form, Form> result{constant_form(form.constant >> drop),
                                 constant_form(form.constant & below)};
    for (const auto& [atom, factor] : form.terms) {
      const bool split = reduced || (factor & below) == 0;
      const int64_t out = split ? factor >> drop : 0, in = split ? factor & below : factor;
      if (out != 0) result.first.terms.emplace_back(atom, out);
      if (in != 0) result.second.terms.emplace_back(atom, in);
    }
    return result;
  }

  Form floored(const Form& in, int64_t drop) {
    Form form = in;
    divide_common(form, drop);
    if (form.terms.empty()) return constant_form(form.constant >> drop);
    if (drop == 0) return form;
    return within_limits(form, [&](const Form& own) {
      return own == form ? floor_of(form, drop) : floored(own, drop);
    });
  }

  // A floor of a floor is the floor of what that one is of.
  Form floor_of(const Form& form, int64_t drop) {
    std::vector<Floor> levels = {{form, drop}};
    while (const std::optional<Floor> next = unfloored(levels.back().form)) {
      Floor deeper{next->form, levels.back().drop + next->drop};
      divide_common(deeper.form, deeper.drop);
      if (deeper.drop > most_drop || deeper.drop == 0 || deeper.form.terms.empty()) break;
      levels.push_back(std::move(deeper));
    }
    for (size_t k = levels.size(); k-- > 0;)
      if (const std::optional<Form> found = floor_table(levels[k])) return *found;
    return floor_symbol(levels.back());
  }

  std::optional<Form> floor_table(const Floor& floor) {
    const int64_t drop = floor.drop;
    const auto [outside, inside] = divided(floor.form, drop, false);
    const std::optional<Form> table =
        tabulate_atoms({inside}, [drop](const int64_t* v) { return v[0] >> drop; });
    if (!table) return {};
    remember_floor(*table, inside, drop);
    return combined({outside, *table}, {1, 1}, 0);
  }

  // floor(a / 2^d) = -floor((2^d - 1 - a) / 2^d): the lesser of both insides.
  Form floor_symbol(const Floor& floor) {
    const int64_t drop = floor.drop, unit = int64_t{1} << drop;
    auto [outside, inside] = divided(floor.form, drop, true);
    auto [other_outside, other_inside] = divided(scaled(floor.form, -1, unit - 1), drop, true);
    const int64_t sign = other_inside < inside ? -1 : 1;
    if (sign < 0) {
      outside = std::move(other_outside);
      inside = std::move(other_inside);
    }
    const Form whole = symbol("floor", {drop}, {inside}, [&, &own = inside] {
      const Interval range = interval(own);
      return Interval{range.low >> drop, range.high >> drop};
    });
    remember_floor(whole, inside, drop);
    return combined({outside, whole}, {sign, sign}, 0);
  }

  // `whole` is floor(inside / 2^drop): so is its atom, moved by a constant.
  void remember_floor(const Form& whole, const Form& inside, int64_t drop) {
    if (whole.terms.size() != 1 || drop > most_drop) return;
    const auto [id, factor] = whole.terms[0];
    Atom& atom = atoms_[static_cast<size_t>(id)];
    if (atom.floor || (factor != 1 && factor != -1) || inside.terms.back().first >= id) return;
    const int64_t unit = int64_t{1} << drop, moved = exact_product(whole.constant, unit);
    atom.floor =
        Floor{factor > 0 ? scaled(inside, 1, -moved) : scaled(inside, -1, moved + unit - 1), drop};
  }

  // A function that never falls, of a limited number: limits of the function of that number.
  template <class Rounding>
  Form within_limits(const Form& in, const Rounding& rounded) {
    if (in.terms.size() != 1) return rounded(in);
    const auto factor = in.terms[0].second;
    const Atom& below = atoms_[static_cast<size_t>(in.terms[0].first)];
    if (!below.limited) return rounded(in);
    const Form again = scaled(*below.limited, factor, in.constant);
    const Interval range = interval(again);
    const auto end = [&](int64_t limit, bool high) {
      if (limit == endless || limit == -endless) return high ? range.high : range.low;
      return exact_sum(exact_product(limit, factor), in.constant);
    };
    const bool falls = factor < 0;
    const int64_t low = end(falls ? below.limits.high : below.limits.low, false),
                  high = end(falls ? below.limits.low : below.limits.high, true);
    const auto value = [&](int64_t number) { return rounded(constant_form(number)).constant; };
    const Interval limits{value(low), value(high)};
    return limited(rounded(again), limits);
  }

  std::vector<Atom> atoms_;
  std::vector<int> inputs_;
  std::map<Form, int> sums_;
  std::map<std::pair<std::vector<int>, Codes>, int> tables_;
  std::map<std::tuple<std::string, Codes, std::vector<Form>>, int> symbols_;
};

std::vector<Form> output_forms(const CheckedGraph& graph, Atoms& atoms) {
  std::vector<size_t> last_reader(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const CheckedId id : graph.nodes[i].inputs) last_reader[static_cast<size_t>(id)] = i;
  for (const CheckedId id : graph.outputs)
    last_reader[static_cast<size_t>(id)] = graph.nodes.size();
  std::vector<Form> forms(graph.nodes.size());
  size_t input = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const CheckedNode& node = graph.nodes[i];
    if (!node.op) {
      forms[i] = atoms.input(input++, node.range);
      continue;
    }
    if (last_reader[i] == 0) continue;  // nothing reads it
    std::vector<Form> in;
    for (const CheckedId id : node.inputs) in.push_back(forms[static_cast<size_t>(id)]);
    forms[i] = atoms.of(node, in);
    for (const CheckedId id : node.inputs)
      if (last_reader[static_cast<size_t>(id)] == i) forms[static_cast<size_t>(id)] = {};
  }
  std::vector<Form> results;
  for (const CheckedId id : graph.outputs) results.push_back(forms[static_cast<size_t>(id)]);
  return results;
}

Codes run_row(const CheckedGraph& graph, const Codes& row) {
  Codes values(graph.nodes.size()), operands, results;
  size_t input = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const CheckedNode& node = graph.nodes[i];
    if (!node.op) {
      values[i] = row[input++];
      continue;
    }
    operands.clear();
    for (const CheckedId id : node.inputs) operands.push_back(values[static_cast<size_t>(id)]);
    values[i] = value_of(node, operands.data());
  }
  for (const CheckedId id : graph.outputs) results.push_back(values[static_cast<size_t>(id)]);
  return results;
}

// Inputs for which they differ, looked for among drawn ones.
std::string example(const CheckedGraph& network, const CheckedGraph& graph) {
  constexpr size_t most_work = 40'000'000, most_rows = 4096;
  std::mt19937_64 random(1);
  const size_t rows = std::clamp<size_t>(
      most_work / (network.nodes.size() + graph.nodes.size() + 1), 16, most_rows);
  for (size_t row = 0; row < rows; ++row) {
    Codes codes;
    for (const CheckedId id : network.inputs) {
      const Interval& range = network.at(id).range;
      const auto count = static_cast<uint64_t>(range.high - range.low) + 1;
      codes.push_back(row == 0   ? range.low
                      : row == 1 ? range.high
                                 : range.low + static_cast<int64_t>(random() % count));
    }
    const Codes wanted = run_row(network, codes), found = run_row(graph, codes);
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (wanted[k] == found[k]) continue;
      std::vector<std::string> texts;
      for (const int64_t code : codes) texts.push_back(std::to_string(code));
      return fmt::format("output {} is {}, where the network has {}, for the inputs {}", k,
                         found[k], wanted[k], join(texts, ", "));
    }
  }
  return "";
}

}  // namespace

SameGraph same_graph(const CheckedGraph& network, const CheckedGraph& graph) {
  using Answer = SameGraph::Answer;
  SameGraph result;
  const auto ends = [&](const std::vector<CheckedId> CheckedGraph::*list, bool inputs) {
    if ((network.*list).size() != (graph.*list).size()) return false;
    for (size_t k = 0; k < (network.*list).size(); ++k) {
      const CheckedNode &a = network.at((network.*list)[k]), &b = graph.at((graph.*list)[k]);
      if (a.frac != b.frac || (inputs && a.range != b.range)) return false;
    }
    return true;
  };
  if (!ends(&CheckedGraph::inputs, true) || !ends(&CheckedGraph::outputs, false)) {
    result.answer = Answer::different;
    result.reason = "its inputs or outputs are others";
    return result;
  }
  Atoms atoms;
  try {
    const std::vector<Form> wanted = output_forms(network, atoms);
    atoms.tabulated = atoms.by_form = 0;
    const std::vector<Form> found = output_forms(graph, atoms);
    result.tabulated = atoms.tabulated;
    result.by_form = atoms.by_form;
    const auto [mine, other] = std::mismatch(wanted.begin(), wanted.end(), found.begin());
    if (mine == wanted.end()) {
      result.answer = Answer::same;
      return result;
    }
    result.reason =
        fmt::format("output {} could not be shown to be the network's", mine - wanted.begin());
  } catch (const Error& error) {
    result.reason = error.what();
  }
  const std::string difference = example(network, graph);
  result.answer = difference.empty() ? Answer::unknown : Answer::different;
  if (!difference.empty()) result.reason = difference;
  return result;
}

}  // namespace mase
