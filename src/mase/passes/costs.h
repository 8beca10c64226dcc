// SPDX-License-Identifier: Apache-2.0
// What a network costs: multiplications, operations, bit operations and memory, per layer and in
// all. Sizes come from shapes, bits from the number types; nothing is run.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

struct LayerCost {
  std::string name, op, type;
  int64_t macs = 0, flops = 0;           // at the batch size asked for
  int64_t weights = 0, activations = 0;  // values: weight; first input (all of the batch)
  double weight_bits = 32, activation_bits = 32, bias_bits = 32;  // per value, on average
  double bitops = 0;        // MACs x weight bits x activation bits
  double ebops = 0;         // HGQ2's, per sample, with the types' widths
  double ebops_exact = 0;   // the same with the bits each weight really needs
  double operand_bits = 0;  // bits of the inputs and weights of products
  // The same with the sum of MASE's `precision` (width and fraction) for the bits, as its labs
  // count.
  double precision_sums = 0;
  double weight_memory = 0, activation_memory = 0;  // bits: parameters; results
  bool is_product() const { return macs > 0; }
};

// A quantity that adds up over layers: its key in JSON, its name in tables, and where it is kept.
struct CostQuantity {
  const char* key;
  const char* label;
  bool per_sample;  // whatever the batch size
  std::variant<int64_t LayerCost::*, double LayerCost::*> member;

  double of(const LayerCost& cost) const;
  Value value(const LayerCost& cost) const;
};
std::span<const CostQuantity> cost_quantities();

struct NetworkCost {
  int64_t batch_size = 1;
  std::vector<LayerCost> layers;
  LayerCost total() const;
  double average_weight_bits() const;      // over weights of products, widths only
  double average_activation_bits() const;  // over inputs of products
  double memory_density() const;           // 32 / average bits over weights and activations
  Value to_value() const;
};

NetworkCost network_cost(const Graph& graph, int64_t batch_size);

// The bits between the first and the last one of a number, its sign apart: what a multiplication
// by this constant needs, wherever its point is. 0 for zero.
int significant_bits(float value);

}  // namespace mase
