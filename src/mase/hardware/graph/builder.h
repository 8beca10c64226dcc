// SPDX-License-Identifier: Apache-2.0
// Writes integer graphs: intervals and binary points are found as nodes are added, constants
// folded, and operations that change nothing left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

enum class IntegerRounding {
  half_up,
  nearest_even,
  half_away,
  half_toward_zero,
  toward_zero,
  away_from_zero,
  floor,
  ceil
};
enum class IntegerOverflow { saturate, wrap };

// Fixed point as hardware means it: width bits, frac of them after the point.
struct FixedFormat {
  bool is_signed = true;
  int width = 8;
  int frac = 0;
  IntegerRounding rounding = IntegerRounding::half_up;
  IntegerOverflow overflow = IntegerOverflow::saturate;
  bool narrow = false;  // without the lowest number of two's complement

  IntegerRange range() const;  // of its codes; width 0 and below: the constant 0
};

class IntegerBuilder {
 public:
  explicit IntegerBuilder(std::string name) { graph_.name = std::move(name); }
  // Further nodes of a graph that has some.
  explicit IntegerBuilder(IntegerGraph graph) : graph_(std::move(graph)) {}

  int add_layer(const std::string& name);  // nodes added from now on belong to it
  void set_layer(int layer) { layer_ = layer; }

  IntegerId input(const IntegerRange& range, int frac, const std::string& name);
  IntegerId constant(int64_t value, int frac);
  IntegerId scale(IntegerId a, int64_t factor, int frac);
  IntegerId shift(IntegerId a, int64_t amount);
  IntegerId negate(IntegerId a);
  // a 2^shift_a +- b 2^shift_b
  IntegerId add(IntegerId a, int64_t shift_a, IntegerId b, int64_t shift_b, bool subtract = false,
                int64_t carry = 0);
  IntegerId add_constant(IntegerId a, int64_t value);
  IntegerId relu(IntegerId a);
  IntegerId clamp(IntegerId a, int64_t low, int64_t high);
  IntegerId wrap(IntegerId a, int width, bool is_signed);
  IntegerId round(IntegerId a, int64_t drop, IntegerRounding rounding);
  IntegerId compare(IntegerId a, IntegerId b);
  IntegerId select(IntegerId condition, IntegerId a, IntegerId b);
  IntegerId register_of(IntegerId a);
  IntegerId table(IntegerId a, int64_t first, int frac, const std::vector<int64_t>& entries);
  // Rounded to the format, overflow as it says.
  IntegerId requantize(IntegerId a, const FixedFormat& format);
  // The same meaning with more fraction bits.
  IntegerId aligned(IntegerId a, int frac);
  // Any node whose record needs nothing special.
  IntegerId node(const std::string& op, std::vector<IntegerId> inputs,
                 std::vector<int64_t> numbers);

  void output(IntegerId a) { graph_.outputs.push_back(a); }
  // The current layer computes these sums of those values.
  void note_linear(const std::vector<IntegerId>& inputs, const std::vector<IntegerId>& outputs,
                   std::optional<IntegerGraph::Sliding> sliding = {}) {
    graph_.linear.push_back({layer_, inputs, outputs, std::move(sliding)});
  }
  // It adds these values to those, or takes them from those, one by one.
  void note_sum(const std::vector<IntegerId>& inputs, const std::vector<IntegerId>& others,
                const std::vector<IntegerId>& outputs) {
    graph_.linear.push_back({layer_, inputs, outputs, {}, others});
  }
  void name(IntegerId a, const std::string& name);
  // A narrower interval that the caller has proved.
  void narrow(IntegerId a, const IntegerRange& range);

  const IntegerNode& at(IntegerId a) const { return graph_.at(a); }
  const IntegerGraph& graph() const { return graph_; }
  IntegerGraph finish();  // without dead nodes, verified

 private:
  bool is_constant(IntegerId a, int64_t* value) const;
  // floor((a + (negative ? below : above)) 2^-drop), by the sign of a.
  IntegerId floor_by_sign(IntegerId a, int64_t drop, int64_t below, int64_t above);

  IntegerGraph graph_;
  int layer_ = -1;
};

// Nodes that no output needs are gone; inputs stay. `map`, if given, gets every old node's new id,
// -1 for those that are gone.
IntegerGraph without_dead_nodes(const IntegerGraph& graph, std::vector<IntegerId>* map = nullptr);

}  // namespace mase
