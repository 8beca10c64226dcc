// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/graph/linear_form.h"

#include <algorithm>
#include <utility>

namespace mase {
namespace {

[[noreturn]] void too_wide() {
  throw Error("integer graph", fmt::format("numbers beyond {} bits", integer_limit_bits),
              "give the layers narrower formats");
}

// By rising root, each once, none with a factor of zero.
void add_up_terms(LinearForm& form) {
  std::stable_sort(form.terms.begin(), form.terms.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const auto& [id, factor] : form.terms)
    if (kept > 0 && form.terms[kept - 1].first == id)
      form.terms[kept - 1].second = checked_add(form.terms[kept - 1].second, factor);
    else
      form.terms[kept++] = {id, factor};
  form.terms.resize(kept);
  std::erase_if(form.terms, [](const auto& term) { return term.second == 0; });
}

LinearForm root(IntegerId id) { return {{{id, 1}}, 0}; }

// Of an affine node from those of its operands.
LinearForm form_of(const IntegerGraph& graph, const IntegerNode& node,
                   const std::vector<LinearForm>& forms) {
  const AffineRule rule = node.op->rule(context_of(graph, node));
  if (node.inputs.size() == 2) {
    LinearForm roots[2];
    const auto operand = [&](size_t k) -> const LinearForm& {
      const IntegerId id = node.inputs[k];
      if (graph.at(id).op->affine) return forms[static_cast<size_t>(id)];
      return roots[k] = root(id);
    };
    LinearForm form = combine(operand(0), rule.factors[0], operand(1), rule.factors[1]);
    form.constant = checked_add(form.constant, rule.constant);
    return form;
  }
  LinearForm form{{}, rule.constant};
  form.terms.reserve(node.inputs.size());
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const int64_t factor = rule.factors[k];
    const IntegerId id = node.inputs[k];
    if (factor == 0) continue;
    if (!graph.at(id).op->affine) {
      form.terms.emplace_back(id, factor);
      continue;
    }
    const LinearForm& part = forms[static_cast<size_t>(id)];
    form.constant = checked_add(form.constant, checked_multiply(part.constant, factor));
    for (const auto& [root, own] : part.terms)
      form.terms.emplace_back(root, checked_multiply(own, factor));
  }
  add_up_terms(form);
  return form;
}

}  // namespace

int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) too_wide();
  return product;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) too_wide();
  return sum;
}

LinearForm combine(const LinearForm& x, int64_t a, const LinearForm& y, int64_t b) {
  LinearForm result;
  result.constant = checked_add(checked_multiply(x.constant, a), checked_multiply(y.constant, b));
  result.terms.reserve(x.terms.size() + y.terms.size());
  const auto put = [&](IntegerId id, int64_t factor) {
    if (factor != 0) result.terms.emplace_back(id, factor);
  };
  size_t i = 0, j = 0;
  while (i < x.terms.size() || j < y.terms.size()) {
    const bool from_x =
        j == y.terms.size() || (i < x.terms.size() && x.terms[i].first <= y.terms[j].first);
    const bool from_y =
        i == x.terms.size() || (j < y.terms.size() && y.terms[j].first <= x.terms[i].first);
    const IntegerId id = from_x ? x.terms[i].first : y.terms[j].first;
    int64_t factor = 0;
    if (from_x) factor = checked_multiply(x.terms[i++].second, a);
    if (from_y) factor = checked_add(factor, checked_multiply(y.terms[j++].second, b));
    put(id, factor);
  }
  return result;
}

namespace {

template <class RangeOf>
IntegerRange range_over(const LinearForm& form, const RangeOf& range_of_root) {
  IntegerRange range{form.constant, form.constant};
  for (const auto& [id, factor] : form.terms) {
    const IntegerRange& term = range_of_root(id);
    range.low = checked_add(range.low, checked_multiply(factor, factor > 0 ? term.low : term.high));
    range.high =
        checked_add(range.high, checked_multiply(factor, factor > 0 ? term.high : term.low));
  }
  return range;
}

}  // namespace

IntegerRange range_of(const LinearForm& form, const IntegerGraph& graph) {
  return range_over(form, [&](IntegerId id) -> const IntegerRange& { return graph.at(id).range; });
}

IntegerRange range_of(const LinearForm& form, const std::vector<IntegerRange>& roots) {
  return range_over(
      form, [&](IntegerId id) -> const IntegerRange& { return roots[static_cast<size_t>(id)]; });
}

void visit_linear_forms(const IntegerGraph& graph,
                        const std::function<void(size_t node, const LinearForm& form)>& visit) {
  const size_t count = graph.nodes.size();
  std::vector<size_t> last_reader(count, 0);
  for (size_t i = 0; i < count; ++i)
    if (graph.nodes[i].op->affine)
      for (const IntegerId input : graph.nodes[i].inputs)
        last_reader[static_cast<size_t>(input)] = i;
  std::vector<LinearForm> forms(count);  // of affine nodes that are still to be read
  for (size_t i = 0; i < count; ++i) {
    const IntegerNode& node = graph.nodes[i];
    if (!node.op->affine) {
      visit(i, root(static_cast<IntegerId>(i)));
      continue;
    }
    LinearForm form = form_of(graph, node, forms);
    visit(i, form);
    if (last_reader[i] > i) forms[i] = std::move(form);
    for (const IntegerId input : node.inputs)
      if (last_reader[static_cast<size_t>(input)] == i) forms[static_cast<size_t>(input)] = {};
  }
}

std::vector<LinearForm> linear_forms(const IntegerGraph& graph) {
  std::vector<LinearForm> forms(graph.nodes.size());
  visit_linear_forms(graph, [&](size_t node, const LinearForm& form) { forms[node] = form; });
  return forms;
}

}  // namespace mase
