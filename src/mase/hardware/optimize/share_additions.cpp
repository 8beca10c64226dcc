// SPDX-License-Identifier: Apache-2.0
// share_additions: sums of multiples => shared additions.
//   y0 = 3 a + 5 b + 7,  y1 = 3 a + b      =>      t = 2 a + a,  y0 = t + (5 b) + carries,  y1 = t
//   + b
// Heads are affine nodes that something not affine reads. Those of one depth (how many rounds of
// other operations lie before them) that have roots in common make one constant matrix-vector
// product. A head's constant is taken by the carries into adders that no other head uses; what is
// left of it costs one more adder. A head that comes out negated is the bits turned over, one less.
// Where roots have few bits, parts of the sums may be tables (small_sums.h).
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "mase/formats/few_digits.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/cmvm.h"
#include "mase/hardware/optimize/optimize.h"
#include "mase/hardware/optimize/same_sums.h"
#include "mase/hardware/optimize/share_additions.h"
#include "mase/hardware/optimize/small_sums.h"

namespace mase {
namespace {

struct Head {
  IntegerId node;
  LinearForm form;
};

// One offer of a carry: what it adds to the head's node if taken.
struct Offer {
  int adder;
  int exponent;
  bool negative;
};

// Chooses offers that sum up to the target, from the lowest power up. What is left is a multiple of
// a power of two as high as possible. The search is small: a few offers for each power.
class CarryChooser {
 public:
  CarryChooser(std::vector<Offer> offers) {
    for (const Offer& offer : offers) by_exponent_[offer.exponent].push_back(offer);
  }

  struct Choice {
    std::vector<int> adders;
    int64_t rest = 0;
  };

  Choice choose(int64_t target) {
    best_ = {{}, target};
    steps_ = 0;
    search(target, by_exponent_.begin(), {});
    return best_;
  }

 private:
  using Exponents = std::map<int, std::vector<Offer>>;

  static bool better(int64_t a, int64_t b) {
    if (a == 0 || b == 0) return a == 0 && b != 0;
    return std::countr_zero(static_cast<uint64_t>(a)) > std::countr_zero(static_cast<uint64_t>(b));
  }

  void search(int64_t target, Exponents::const_iterator at, std::vector<int> taken) {
    if (best_.rest == 0 || ++steps_ > 2000) return;
    if (better(target, best_.rest)) best_ = {taken, target};
    if (target == 0 || at == by_exponent_.end()) return;
    // A lower bit than any offer left can reach stays.
    const int lowest = std::countr_zero(static_cast<uint64_t>(target));
    if (lowest < at->first) return;
    const auto& offers = at->second;
    const bool odd = (target >> at->first & 1) != 0;
    std::vector<Offer> plus, minus;
    for (const Offer& offer : offers) (offer.negative ? minus : plus).push_back(offer);
    // Fewest first; parity is forced.
    std::vector<std::pair<size_t, size_t>> counts;
    for (size_t p = 0; p <= plus.size(); ++p)
      for (size_t m = 0; m <= minus.size(); ++m)
        if (((p + m) % 2 == 1) == odd) counts.emplace_back(p, m);
    std::sort(counts.begin(), counts.end(),
              [](const auto& a, const auto& b) { return a.first + a.second < b.first + b.second; });
    for (const auto& [p, m] : counts) {
      std::vector<int> next = taken;
      for (size_t k = 0; k < p; ++k) next.push_back(plus[k].adder);
      for (size_t k = 0; k < m; ++k) next.push_back(minus[k].adder);
      const int64_t change =
          (static_cast<int64_t>(p) - static_cast<int64_t>(m)) * (int64_t{1} << at->first);
      search(target - change, std::next(at), std::move(next));
    }
  }

  Exponents by_exponent_;
  Choice best_;
  int steps_ = 0;
};

// One product: its heads written into the builder.
class ProductWriter {
 public:
  ProductWriter(IntegerBuilder& builder, const std::vector<IntegerId>& roots,
                const AdderGraph& graph)
      : builder_(builder), roots_(roots), graph_(graph), carries_(graph.adders.size(), 0) {
    find_private();
  }

  // The carries of every head must be chosen before anything is written.
  void plan(size_t head, int64_t constant) {
    const AdderGraph::Output& output = graph_.outputs[head];
    Plan plan;
    plan.constant = constant;
    if (output.node >= 0) {
      // out = +-node 2^shift + constant; the lowest bits of the constant are wiring.
      const int64_t step = int64_t{1} << output.shift;
      int64_t high = constant >> output.shift;
      plan.low = constant - high * step;
      // -v + high is ~(v - high - 1)
      const int64_t wanted = output.negative ? -high - 1 : high;
      CarryChooser::Choice choice = CarryChooser(offers(output.node)).choose(wanted);
      for (const int adder : choice.adders) carries_[static_cast<size_t>(adder)] = 1;
      plan.rest = choice.rest;
    }
    plans_.push_back(plan);
  }

  // The head's value, with the binary point `frac`.
  IntegerId write(size_t head, int frac) {
    const AdderGraph::Output& output = graph_.outputs[head];
    const Plan& plan = plans_[head];
    if (output.node < 0) return builder_.constant(plan.constant, frac);
    IntegerId value = node(output.node, frac - output.shift);
    value = builder_.add_constant(value, plan.rest);
    if (output.negative) value = builder_.node("invert", {value}, {});
    if (output.shift == 0) return value;
    if (plan.low == 0) return builder_.shift(value, output.shift);
    return builder_.add(value, output.shift, builder_.constant(plan.low, frac), 0);
  }

 private:
  struct Plan {
    int64_t constant = 0, low = 0, rest = 0;
  };

  // Adders that serve one head only, through single uses.
  void find_private() {
    const int inputs = static_cast<int>(roots_.size());
    uses_.assign(graph_.adders.size(), 0);
    for (const AdderGraph::Adder& adder : graph_.adders)
      for (const int operand : {adder.a, adder.b})
        if (operand >= inputs) ++uses_[static_cast<size_t>(operand - inputs)];
    for (const AdderGraph::Output& output : graph_.outputs)
      if (output.node >= inputs) ++uses_[static_cast<size_t>(output.node - inputs)];
  }

  std::vector<Offer> offers(int node) const {
    std::vector<Offer> result;
    collect(node, 0, false, result);
    return result;
  }

  void collect(int node, int exponent, bool negative, std::vector<Offer>& result) const {
    const int inputs = static_cast<int>(roots_.size());
    if (node < inputs || uses_[static_cast<size_t>(node - inputs)] != 1 || exponent > 40) return;
    const AdderGraph::Adder& adder = graph_.adders[static_cast<size_t>(node - inputs)];
    const int start = adder.subtract ? adder.shift_b : std::max(adder.shift_a, adder.shift_b);
    // Operands side by side have no chain to carry into.
    const int bits = chain_bits(range_of_operand(adder.a), adder.shift_a, range_of_operand(adder.b),
                                adder.shift_b, adder.subtract, adder.range);
    if (bits > 0) result.push_back({node - inputs, exponent + start, negative != adder.subtract});
    collect(adder.a, exponent + adder.shift_a, negative, result);
    collect(adder.b, exponent + adder.shift_b, negative != adder.subtract, result);
  }

  IntegerRange range_of_operand(int node) const {
    const int inputs = static_cast<int>(roots_.size());
    return node < inputs ? builder_.at(roots_[static_cast<size_t>(node)]).range
                         : graph_.adders[static_cast<size_t>(node - inputs)].range;
  }

  IntegerId node(int index, int frac) {
    const int inputs = static_cast<int>(roots_.size());
    if (index < inputs) return at_frac(roots_[static_cast<size_t>(index)], frac);
    const auto known = written_.find(index);
    if (known != written_.end()) return at_frac(known->second, frac);
    const AdderGraph::Adder& adder = graph_.adders[static_cast<size_t>(index - inputs)];
    const IntegerId a = node(adder.a, frac - adder.shift_a),
                    b = node(adder.b, frac - adder.shift_b);
    const IntegerId id = builder_.add(a, adder.shift_a, b, adder.shift_b, adder.subtract,
                                      carries_[static_cast<size_t>(index - inputs)]);
    written_[index] = id;
    return id;
  }

  // Products work on codes: the same code may mean another power of two for another user.
  IntegerId at_frac(IntegerId id, int frac) {
    if (builder_.at(id).frac == frac) return id;
    const auto key = std::make_pair(id, frac);
    const auto known = renamed_.find(key);
    if (known != renamed_.end()) return known->second;
    return renamed_[key] = builder_.node("scale", {id}, {1, frac});
  }

  IntegerBuilder& builder_;
  const std::vector<IntegerId>& roots_;
  const AdderGraph& graph_;
  std::vector<int> uses_;
  std::vector<int64_t> carries_;
  std::vector<Plan> plans_;
  std::map<int, IntegerId> written_;
  std::map<std::pair<IntegerId, int>, IntegerId> renamed_;
};

// A constant that rounding added belongs to the sum it is added to.
int layer_of_sum(const IntegerGraph& graph, IntegerId head) {
  const IntegerNode* node = &graph.at(head);
  while (node->op->name == "add" && graph.at(node->inputs[1]).op->name == "constant" &&
         graph.at(node->inputs[0]).op->affine)
    node = &graph.at(node->inputs[0]);
  return node->layer;
}

struct Product {
  std::vector<IntegerId> roots;
  std::vector<Head> heads;
};

std::vector<Product> products(const std::vector<Head>& heads) {
  std::map<IntegerId, size_t> owner;  // root -> first head that has it
  std::vector<size_t> group(heads.size());
  std::iota(group.begin(), group.end(), size_t{0});
  const auto find = [&](size_t i) {
    while (group[i] != i) i = group[i] = group[group[i]];
    return i;
  };
  for (size_t h = 0; h < heads.size(); ++h)
    for (const auto& [root, factor] : heads[h].form.terms) {
      const auto [entry, fresh] = owner.try_emplace(root, h);
      if (!fresh)
        group[std::max(find(h), find(entry->second))] = std::min(find(h), find(entry->second));
    }
  std::map<size_t, Product> by_group;
  for (size_t h = 0; h < heads.size(); ++h) {
    Product& product = by_group[find(h)];
    product.heads.push_back(heads[h]);
    for (const auto& [root, factor] : heads[h].form.terms) product.roots.push_back(root);
  }
  std::vector<Product> result;
  for (auto& [index, product] : by_group) {
    std::sort(product.roots.begin(), product.roots.end());
    product.roots.erase(std::unique(product.roots.begin(), product.roots.end()),
                        product.roots.end());
    result.push_back(std::move(product));
  }
  return result;
}

// Forms of what outputs and operations that are not affine read; no others.
std::vector<LinearForm> forms_read(const IntegerGraph& graph) {
  std::vector<char> read(graph.nodes.size(), 0);
  for (const IntegerNode& node : graph.nodes)
    if (!node.op->affine)
      for (const IntegerId input : node.inputs) read[static_cast<size_t>(input)] = 1;
  for (const IntegerId output : graph.outputs) read[static_cast<size_t>(output)] = 1;
  std::vector<LinearForm> forms(graph.nodes.size());
  visit_linear_forms(graph, [&](size_t i, const LinearForm& form) {
    if (read[i]) forms[i] = form;
  });
  return forms;
}

// Affine nodes that something else reads.
std::vector<char> heads_of(const IntegerGraph& graph, const std::vector<LinearForm>& forms) {
  std::vector<char> is_head(graph.nodes.size(), 0);
  for (size_t i = 0; i < is_head.size(); ++i)
    is_head[i] = graph.nodes[i].op->affine && !forms[i].terms.empty();
  return is_head;
}

// A product as additions alone, or with the terms of few bits in tables.
struct SolvedProduct {
  AdderGraph adders;
  std::optional<GroupedProduct> grouped = {};
};

SolvedProduct cheapest(const CmvmProblem& problem, const CmvmOptions& options, bool group) {
  // Not the calibrated estimate: of chains of two or three bits, which is what narrow values have,
  // it knows too little. The highest bit of a sum is the carry of those below.
  const auto worth = [&](const SolvedProduct& one) {
    const double luts = static_cast<double>(one.adders.bits) -
                        static_cast<double>(one.adders.adders.size()) +
                        (one.grouped ? one.grouped->luts : 0);
    return luts * (1 + options.delay_weight * one.adders.arrival / 100);
  };
  SolvedProduct best{solve_cmvm(problem, options)};
  for (int bits = 1; group && bits <= small_sum_bits / 2; ++bits) {
    std::optional<GroupedProduct> grouped = group_narrow_inputs(problem, bits);
    if (!grouped) continue;
    SolvedProduct next{solve_cmvm(grouped->problem, options), std::move(grouped)};
    if (worth(next) < worth(best)) best = std::move(next);
  }
  return best;
}

// The inputs of the grouped product, its small sums written.
std::vector<IntegerId> grouped_roots(IntegerBuilder& builder, const std::vector<IntegerId>& roots,
                                     const GroupedProduct& grouped) {
  std::vector<IntegerId> result;
  for (const size_t input : grouped.kept) result.push_back(roots[input]);
  for (const GroupedProduct::Part& part : grouped.parts) {
    std::vector<IntegerId> operands;
    for (const size_t input : part.inputs) operands.push_back(roots[input]);
    std::vector<int64_t> numbers = {builder.at(operands[0]).frac};
    numbers.insert(numbers.end(), part.factors.begin(), part.factors.end());
    result.push_back(builder.node("small_sum", std::move(operands), std::move(numbers)));
  }
  return result;
}

}  // namespace

double sharing_work(const IntegerGraph& graph) {
  const std::vector<LinearForm> forms = forms_read(graph);
  const std::vector<char> is_head = heads_of(graph, forms);
  double work = 0;
  for (size_t i = 0; i < forms.size(); ++i) {
    if (!is_head[i]) continue;
    double digits = 0;
    for (const auto& [root, factor] : forms[i].terms) digits += signed_digit_count(factor);
    work += digits * digits;
  }
  return work;
}

namespace {

IntegerGraph shared(const IntegerGraph& graph, const CmvmOptions& options, bool group) {
  const std::vector<LinearForm> forms = forms_read(graph);
  const size_t count = graph.nodes.size();
  // Depth of a root: how many others lie before it.
  std::vector<int> depth(count, 0);
  const auto form_depth = [&](const LinearForm& form) {
    int deepest = 0;
    for (const auto& [root, factor] : form.terms)
      deepest = std::max(deepest, depth[static_cast<size_t>(root)]);
    return deepest;
  };
  const std::vector<char> is_head = heads_of(graph, forms);
  for (size_t i = 0; i < count; ++i)
    if (!graph.nodes[i].op->affine)
      for (const IntegerId input : graph.nodes[i].inputs)
        depth[i] = std::max(depth[i], form_depth(forms[static_cast<size_t>(input)]) + 1);
  std::map<int, std::vector<Head>> by_depth;
  for (size_t i = 0; i < count; ++i)
    if (is_head[i]) by_depth[form_depth(forms[i])].push_back({static_cast<IntegerId>(i), forms[i]});

  IntegerBuilder builder(IntegerGraph{graph.name, graph.layers, {}, {}, {}});
  std::vector<IntegerId> renamed(count, -1);
  int written_depth = -1;
  const auto write_products = [&](int level) {
    for (const Product& product : products(by_depth[level])) {
      CmvmProblem problem;
      std::vector<IntegerId> roots;
      const std::vector<double> arrival = arrival_times(builder.graph());
      std::map<IntegerId, size_t> row_of;
      for (const IntegerId root : product.roots) {
        const IntegerId id = renamed[static_cast<size_t>(root)];
        MASE_CHECK(id >= 0, "root %{} is not written yet", root);
        row_of[root] = roots.size();
        roots.push_back(id);
        problem.inputs.push_back(builder.at(id).range);
        problem.arrival.push_back(arrival[static_cast<size_t>(id)]);
        problem.weights.emplace_back(product.heads.size(), 0);
      }
      for (size_t h = 0; h < product.heads.size(); ++h)
        for (const auto& [root, factor] : product.heads[h].form.terms)
          problem.weights[row_of.at(root)][h] = factor;
      const SolvedProduct solved = cheapest(problem, options, group);
      const AdderGraph& adders = solved.adders;
      if (solved.grouped) {
        builder.set_layer(layer_of_sum(graph, product.heads[0].node));
        roots = grouped_roots(builder, roots, *solved.grouped);
      }
      if (const std::string fault =
              check_cmvm(solved.grouped ? solved.grouped->problem : problem, adders);
          !fault.empty())
        MASE_CHECK(false, "shared additions: {}", fault);
      ProductWriter writer(builder, roots, adders);
      for (size_t h = 0; h < product.heads.size(); ++h)
        writer.plan(h, product.heads[h].form.constant);
      for (size_t h = 0; h < product.heads.size(); ++h) {
        const IntegerId head = product.heads[h].node;
        builder.set_layer(layer_of_sum(graph, head));
        const IntegerId value = writer.write(h, graph.at(head).frac);
        renamed[static_cast<size_t>(head)] = value;
        // The chain of adders knows a wider interval than the sum has, and what reads the sum (a
        // join) may take no more bits than it has.
        const IntegerRange &sum = graph.at(head).range, &chain = builder.at(value).range;
        builder.narrow(value, {std::max(sum.low, chain.low), std::min(sum.high, chain.high)});
        if (!graph.at(head).name.empty()) builder.name(value, graph.at(head).name);
      }
    }
  };
  // Roots of one depth are written in order before the products that read them.
  int deepest = 0;
  for (size_t i = 0; i < count; ++i)
    if (!graph.nodes[i].op->affine) deepest = std::max(deepest, depth[i]);
  if (!by_depth.empty()) deepest = std::max(deepest, by_depth.rbegin()->first);
  for (int level = 0; level <= deepest; ++level) {
    for (size_t i = 0; i < count; ++i) {
      const IntegerNode& node = graph.nodes[i];
      if (node.op->affine || depth[i] != level) continue;
      builder.set_layer(node.layer);
      if (!node.op->evaluate) {
        renamed[i] = builder.input(node.range, node.frac, node.name);
        continue;
      }
      std::vector<IntegerId> inputs;
      for (const IntegerId input : node.inputs) {
        const LinearForm& form = forms[static_cast<size_t>(input)];
        if (graph.at(input).op->affine && form.terms.empty())
          inputs.push_back(builder.constant(form.constant, graph.at(input).frac));
        else
          inputs.push_back(renamed[static_cast<size_t>(input)]);
        MASE_CHECK(inputs.back() >= 0, "operand %{} is not written yet", input);
      }
      renamed[i] = builder.node(node.op->name, std::move(inputs), node.numbers);
      if (!node.name.empty()) builder.name(renamed[i], node.name);
    }
    if (level > written_depth) write_products(level);
    written_depth = level;
  }
  require_same_sums(forms, is_head, builder.graph(), renamed);
  IntegerGraph result = builder.graph();
  for (const IntegerId output : graph.outputs) {
    const LinearForm& form = forms[static_cast<size_t>(output)];
    IntegerId id = renamed[static_cast<size_t>(output)];
    if (graph.at(output).op->affine && form.terms.empty()) {
      result.nodes.push_back({.op = &integer_op("constant"),
                              .numbers = {form.constant},
                              .range = {form.constant, form.constant},
                              .frac = graph.at(output).frac});
      id = static_cast<IntegerId>(result.nodes.size()) - 1;
    }
    result.outputs.push_back(id);
  }
  result = without_dead_nodes(result);
  // Narrow every sum to the exact interval of its linear form, and what follows from it.
  visit_linear_forms(result, [&](size_t i, const LinearForm& form) {
    IntegerNode& node = result.nodes[i];
    if (!node.op->evaluate) return;
    node.range =
        node.op->affine ? range_of(form, result) : node.op->range(context_of(result, node));
  });
  return result;
}

}  // namespace

IntegerGraph share_additions(const IntegerGraph& graph, const CmvmOptions& options) {
  return shared(graph, options, true);
}

IntegerGraph share_plain_additions(const IntegerGraph& graph, const CmvmOptions& options) {
  return shared(graph, options, false);
}

}  // namespace mase
