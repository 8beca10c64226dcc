// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/linear_form.h"

#include <utility>

namespace mase {
namespace {

[[noreturn]] void too_wide() {
  throw Error("integer graph", fmt::format("numbers beyond {} bits", integer_limit_bits),
              "give the layers narrower formats");
}

LinearForm root(IntegerId id) { return {{{id, 1}}, 0}; }

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

IntegerRange range_of(const LinearForm& form, const IntegerGraph& graph) {
  IntegerRange range{form.constant, form.constant};
  for (const auto& [id, factor] : form.terms) {
    const IntegerRange& term = graph.at(id).range;
    range.low = checked_add(range.low, checked_multiply(factor, factor > 0 ? term.low : term.high));
    range.high =
        checked_add(range.high, checked_multiply(factor, factor > 0 ? term.high : term.low));
  }
  return range;
}

std::vector<LinearForm> linear_forms(const IntegerGraph& graph) {
  std::vector<LinearForm> forms(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    if (!node.op->affine) {
      forms[i] = root(static_cast<IntegerId>(i));
      continue;
    }
    const AffineRule rule = node.op->rule(context_of(graph, node));
    LinearForm form{{}, rule.constant};
    for (size_t k = 0; k < node.inputs.size(); ++k)
      form = combine(form, 1, forms[static_cast<size_t>(node.inputs[k])], rule.factors[k]);
    forms[i] = std::move(form);
  }
  return forms;
}

}  // namespace mase
