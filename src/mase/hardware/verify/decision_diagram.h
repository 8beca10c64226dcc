// SPDX-License-Identifier: Apache-2.0
// Ordered binary decision diagrams (Bryant, 1986): functions of bits in a form in which equal ones
// are the same number. Comparisons, choices, limits and additions of a constant stay small if the
// bits of their operands take turns in the order.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace mase {

using Decision = int32_t;

class DecisionDiagram {
 public:
  static constexpr Decision never = 0, always = 1;

  DecisionDiagram();
  // Lower ones are asked first.
  Decision variable(int index);
  Decision inverse(Decision a) { return apply(Connective::differ, a, always); }
  Decision both(Decision a, Decision b) { return apply(Connective::both, a, b); }
  Decision either(Decision a, Decision b) { return inverse(both(inverse(a), inverse(b))); }
  Decision differ(Decision a, Decision b) { return apply(Connective::differ, a, b); }
  Decision choose(Decision when, Decision a, Decision b) {
    return either(both(when, a), both(inverse(when), b));
  }

  // It grew beyond all use; results mean nothing then.
  bool is_full() const { return full_; }
  bool value(Decision a, const std::vector<bool>& variables) const;
  // Variables for which it is true, of one that can be.
  std::vector<bool> example(Decision a, int variables) const;

 private:
  enum class Connective : uint64_t { both, differ };
  struct Node {
    int variable;
    Decision low, high;
  };

  Decision node(int variable, Decision low, Decision high);
  Decision apply(Connective operation, Decision a, Decision b);

  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, Decision> known_, results_;
  bool full_ = false;
};

}  // namespace mase
