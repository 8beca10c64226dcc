// SPDX-License-Identifier: Apache-2.0
// The integer graph: a network as hardware computes it. Flat, in single assignment order: every
// node is one integer with an exact interval and a binary point, and means  code * 2^-frac.
// Operations are records (one file each in hardware/ops) that say what they do to integers, to
// intervals and to linear forms, what they cost, and how they read in SystemVerilog.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/hardware/kernels/lanes.h"

namespace mase {

// Codes stay within this many bits, so that no sum or product of the interpreter overflows.
inline constexpr int integer_limit_bits = 62;

struct IntegerRange {
  int64_t low = 0, high = 0;

  bool operator==(const IntegerRange&) const = default;
  bool contains(const IntegerRange& other) const { return low <= other.low && other.high <= high; }
  bool is_signed() const { return low < 0; }
  int width() const;  // bits of two's complement, or of plain binary from zero up; 0: always zero
};

using IntegerId = int32_t;
struct IntegerOpRecord;

struct IntegerNode {
  const IntegerOpRecord* op = nullptr;
  std::vector<IntegerId> inputs = {};
  std::vector<int64_t> numbers = {};  // as the record names them
  IntegerRange range = {};
  int frac = 0;
  int layer = -1;         // index into IntegerGraph::layers
  std::string name = {};  // empty: the emitter makes one
};

struct IntegerGraph {
  std::string name;
  std::vector<std::string> layers;  // names of the network's own nodes
  std::vector<IntegerNode> nodes;   // operands before users
  std::vector<IntegerId> inputs, outputs;

  // Windows that slide over a plane: [0] down, [1] across.
  struct Sliding {
    int64_t channels = 1, results = 1;  // of a position before and after
    int64_t size[2], kernel[2], stride[2], before[2], after[2], dilation[2], result[2];
    bool largest = false;  // of a window and channel, instead of sums
  };
  // Which sums are a linear layer's, as lowering wrote them; -1 for values that nothing needs.
  // Optimisers, which take layers apart, leave none. With windows, values lie position by position,
  // the channels of one side by side.
  struct LinearLayer {
    int layer = -1;
    std::vector<IntegerId> inputs, outputs;
    std::optional<Sliding> sliding = {};
    // Added to (or taken from) the inputs one by one: what stands beside each of them.
    std::vector<IntegerId> others = {};
  };
  std::vector<LinearLayer> linear = {};

  const IntegerNode& at(IntegerId id) const { return nodes[static_cast<size_t>(id)]; }
  IntegerNode& at(IntegerId id) { return nodes[static_cast<size_t>(id)]; }
};

// What an affine operation is in its operands' codes: sum of factor[i] * operand[i] + constant.
struct AffineRule {
  std::vector<int64_t> factors;
  int64_t constant = 0;
};

// What the records are given of a node's surroundings.
struct IntegerContext {
  const IntegerNode& node;
  std::vector<IntegerRange> ranges;  // of the operands
  std::vector<int> fracs;
  std::vector<int> low_zeros;  // lowest bits of the operands that are always zero

  int64_t number(size_t index) const { return node.numbers[index]; }
};

// When each bit of a value is there, in levels, the lowest bit first: carry chains end late at the
// top only.
using BitTimes = std::vector<double>;

// How a node reads in SystemVerilog: operands are signals as wide as their ranges say.
struct VerilogOperand {
  std::string signal;
  IntegerRange range;
};

struct IntegerOpRecord {
  static constexpr const char* kind = "integer operation";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  int arity = 1;                          // -1: any number
  std::vector<std::string> numbers = {};  // names of the node's numbers
  bool more_numbers = false;              // further ones may follow (tables)
  bool affine = false;                    // gives `rule`

  // What is wrong with the numbers and operands; empty: nothing. Called before anything below.
  std::function<std::string(const IntegerContext&)> check = {};
  std::function<int64_t(const int64_t* operands, const IntegerNode& node)> evaluate;
  // The same for a block of rows; empty: row by row through `evaluate`.
  std::function<LaneStep(const IntegerNode& node)> lanes = {};
  std::function<IntegerRange(const IntegerContext&)> range;
  std::function<int(const IntegerContext&)> frac;
  std::function<AffineRule(const IntegerContext&)> rule = {};
  // How many of the lowest bits are always zero; empty: none is known to be.
  std::function<int(const IntegerNode&)> low_zeros = {};
  // 6-input look-up tables, and delay in levels of logic; null functions: free wiring.
  std::function<double(const IntegerContext&)> luts = {};
  std::function<double(const IntegerContext&)> delay = {};
  // The bits' times from those of the operands; empty: all bits, `delay` after the last operand's.
  std::function<BitTimes(const IntegerContext&, const std::vector<BitTimes>&)> times = {};
  // The result for every value of the operands' bits, the first operand's lowest: written as
  // look-up tables, and read back by trying them all.
  std::function<std::vector<int64_t>(const IntegerContext&)> entries = {};
  // The right-hand side of the node's assignment. Empty: the emitter handles it (input, register).
  std::function<std::string(const IntegerContext&, const std::vector<VerilogOperand>&)> verilog =
      {};
  // Statements that drive the node's wire, for operations made of a family's cells; names of their
  // own begin with `parts`. Such a node has no right-hand side.
  std::function<std::string(const IntegerContext&, const std::string& name,
                            const std::string& parts, const std::vector<VerilogOperand>&)>
      cells = {};
  // The same in C++, with the functions of cpp_header.cpp.
  std::function<std::string(const IntegerContext&, const std::vector<std::string>&)> cpp = {};
};

const IntegerOpRecord& integer_op(const std::string& name);
IntegerContext context_of(const IntegerGraph& graph, const IntegerNode& node);

// The text form, one line a node, that reads back to the same graph.
std::string to_text(const IntegerGraph& graph);
IntegerGraph integer_graph_from_text(const std::string& text, const std::string& place);

// Throws an Error that names the node: operands defined before use, numbers as the record wants
// them, binary points and intervals right. An interval may be narrower than that of the operands'
// intervals where the linear form proves it.
void verify(const IntegerGraph& graph);

// Codes of all outputs for rows of codes of all inputs, by plain loops: what faster ones are tested
// against. An input outside its interval is an error.
std::vector<int64_t> interpret_reference(const IntegerGraph& graph,
                                         const std::vector<int64_t>& rows);
// Every node's code for one row.
std::vector<int64_t> interpret_all(const IntegerGraph& graph, const int64_t* row);

}  // namespace mase
